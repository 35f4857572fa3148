"""The user's derivative rules, of `jax.custom_jvp` and `jax.custom_vjp`.

A jaxpr holds a rule as a function that traces it on demand, for a given choice of the operands that are
perturbed (those that have a tangent at all): of the others it is told that their tangents are zero. The
backward part of a rule is likewise told which cotangents are zero. A rule without `symbolic_zeros` is told
nothing: it sees arrays of zeros.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from ...errors import TracingError
from . import internals, source
from .jaxprs import ClosedJaxpr, constants, float0, instantiated, is_dead, is_inexact, is_var, outputs

_RETURNS_LOGS = jax.__version_info__ >= (0, 11)
"""Since this JAX a backward rule returns the cotangents and what it logs."""

_ALL_TAKE_ZEROS = jax.__version_info__ >= (0, 12)
"""Since this JAX a rule without `symbolic_zeros` is called with symbolic zeros, too, and makes arrays of them
itself: `vmap`, under which the rule may be, refuses other cotangents of a result that the examples share."""

Perturbed = list[bool]
"""For each operand after the constants whether it is."""

Given = list[bool]
"""For each inexact result whether its cotangent is given; it is zero otherwise."""


@dataclass(frozen=True)
class CustomJvp:
    """call: the function's own jaxpr, of all operands. consts: how many leading operands it closes over.

    rule: perturbed -> ((x..., tangents of the perturbed x...) -> (y..., tangents...), and for each y whether
    its tangent is not among these results since it is zero), where x are the operands after the constants.
    symbolic_zeros: the rule depends on which operands are perturbed.
    """

    call: Any
    consts: int
    rule: Callable[[Perturbed], tuple[ClosedJaxpr, list[bool]]]
    symbolic_zeros: bool


Pullback = Callable[[Given], tuple[ClosedJaxpr, Given]]
"""A backward rule, traced for the cotangents that are given: (residuals..., cotangents...) -> (cotangents of
the perturbed x...), and which cotangents it takes; those are all, if it could not be traced anew."""


@dataclass(frozen=True)
class VjpRule:
    """forward: (operands after the first `skipped`...) -> (own residuals..., y...).

    residuals: of all residuals, None for the next of the rule's own, else the number of the operand
        (constants counted) that is the residual.
    residual_avals: of all residuals.
    closed_over: for each operand whether it is a value that the function closed over when JAX traced it
        first, before it became an operand, as under vmap; the rule is not about it.
    for_residuals: the forward rule is for residuals alone, by `optimize_remat=True`: in a checkpoint, which
        keeps none, the values are those of the function.
    """

    forward: ClosedJaxpr
    skipped: int
    residuals: list[int | None]
    residual_avals: list[Any]
    closed_over: list[bool]
    backward: Pullback
    for_residuals: bool


@dataclass(frozen=True)
class CustomVjp:
    """As `CustomJvp`, of a rule in two parts."""

    call: Any
    consts: int
    rule: Callable[[Perturbed], VjpRule]
    symbolic_zeros: bool


def of(eqn: Any) -> CustomJvp | CustomVjp | None:
    """The rules of an equation that has some in its parameters."""
    if eqn.primitive.name == "custom_jvp_call":
        return custom_jvp(eqn)
    return custom_vjp(eqn) if eqn.primitive.name == "custom_vjp_call" else None


def line_of_rule(eqn: Any) -> str:
    """Where the user's rule of such an equation is, as `file.py:12 (rule)`; else where it is called."""
    rule = eqn.params["bwd" if "bwd" in eqn.params else "jvp_jaxpr_fun"]
    found = re.fullmatch(r"(.+) at (.+):(\d+)", str(getattr(rule.debug_info, "func_src_info", "")))
    if found and source.is_user_file(found[2]):
        return source.describe_frame(found[2], int(found[3]), found[1])
    return source.line_of(eqn)


def custom_jvp(eqn: Any) -> CustomJvp:
    params = eqn.params

    def rule(perturbed: Perturbed) -> tuple[ClosedJaxpr, list[bool]]:
        with eqn.ctx.manager:
            jaxpr, consts, out_zeros = params["jvp_jaxpr_fun"].call_wrapped(*(not p for p in perturbed))
        return _checked(ClosedJaxpr(jaxpr, consts)), list(out_zeros)

    return CustomJvp(params["call_jaxpr"], int(params["num_consts"]), rule, bool(params["symbolic_zeros"]))


def custom_vjp(eqn: Any) -> CustomVjp:
    params = eqn.params
    consts, symbolic_zeros = int(params["num_consts"]), bool(params["symbolic_zeros"])
    takes_zeros = symbolic_zeros or _ALL_TAKE_ZEROS
    avals, outs, ctx = [v.aval for v in eqn.invars], [v.aval for v in eqn.outvars], eqn.ctx
    # How residuals are grouped JAX knows of the last forward rule that it traced, and backward rules ask for
    # it. So the rules that there are belong to what keeps it. A rule that is told of no zeros groups them one
    # way.
    rules: dict[tuple, tuple[VjpRule, _Backward]] = vars(params["out_trees"]).setdefault("pybridge_rules", {})

    def rule(perturbed: Perturbed) -> VjpRule:
        key = params["fwd_jaxpr_thunk"].f, *perturbed
        if key not in rules:
            for _, backward in rules.values() if symbolic_zeros else ():
                backward.settle()
            rules[key] = traced(perturbed)
        return rules[key][0]

    def traced(perturbed: Perturbed) -> tuple[VjpRule, _Backward]:
        flags = perturbed if symbolic_zeros else [_Unperturbed() for _ in perturbed]
        with ctx.manager:
            jaxpr, values = params["fwd_jaxpr_thunk"].call_wrapped(*flags)
        forward = _checked(ClosedJaxpr(jaxpr, values))
        _, _, residuals = params["out_trees"]()
        own = iter(forward.out_avals)
        residual_avals = [next(own) if r is None else avals[r] for r in residuals]
        wanted = [a if p else None for a, p in zip(avals[consts:], perturbed, strict=True)]
        known = _known(forward, residuals)
        backward = _Backward(params["bwd"], ctx, residual_avals, known, outs, wanted, takes_zeros)
        closed_over = [isinstance(flag, _Unperturbed) and flag.asked for flag in flags]
        for_residuals = any(e.primitive.name == "remat_opt" for e in forward.eqns)
        rule = VjpRule(forward, consts, list(residuals), residual_avals, closed_over, backward, for_residuals)
        return rule, backward

    return CustomVjp(params["call_jaxpr"], consts, rule, symbolic_zeros)


class _Unperturbed:
    """False for a forward rule that does not ask.

    When JAX traces a call again, what its function closed over comes among the operands. Of those alone JAX
    asks, and refuses a derivative by them; a rule that is told of no zeros sees no flags.
    """

    asked = False

    def __bool__(self) -> bool:
        self.asked = True
        return False


def _known(forward: ClosedJaxpr, residuals: Sequence[int | None]) -> dict[int, Any]:
    """The residuals that depend on no operand, such as shapes, which the rule may need as numbers."""
    own = iter(outputs(forward))
    atoms = {i: next(own) for i, operand in enumerate(residuals) if operand is None}
    values = dict(constants(forward))
    literals = {i: atom.val for i, atom in atoms.items() if not is_var(atom)}
    return literals | {i: values[atom] for i, atom in atoms.items() if is_var(atom) and atom in values}


@dataclass(frozen=True)
class CustomLin:
    """The linear part of a custom_vjp function that was differentiated before it was traced.

    The operands are residuals, whose avals these are, then tangents, of which `backward` gives cotangents.
    """

    residual_avals: Sequence[Any]
    backward: Pullback


def custom_lin(eqn: Any) -> CustomLin:
    params = eqn.params
    count = int(params["num_res"])
    avals, outs = [v.aval for v in eqn.invars], [v.aval for v in eqn.outvars]
    tangents = iter(avals[count:])
    wanted = [None if zero else next(tangents) for zero in params["in_zeros"]]
    takes_zeros = bool(params["symbolic_zeros"]) or _ALL_TAKE_ZEROS
    known = {i: atom.val for i, atom in enumerate(eqn.invars[:count]) if not is_var(atom)}
    backward = _Backward(params["bwd"], eqn.ctx, avals[:count], known, outs, wanted, takes_zeros)
    return CustomLin(avals[:count], backward)


@dataclass(eq=False)
class _Backward:
    """A `Pullback`.

    known: the values of residuals that have one when the rule is traced. outs: the avals of the results.
    wanted: for each x its aval if a cotangent is wanted, else None. takes_zeros: symbolic ones.
    found: what was traced, or what that raised. is_late: it is too late to trace anything anew.
    """

    bwd: Any
    ctx: Any
    residual_avals: list[Any]
    known: Mapping[int, Any]
    outs: list[Any]
    wanted: list[Any]
    takes_zeros: bool
    found: dict[tuple, ClosedJaxpr | Exception] = field(default_factory=dict)
    is_late: bool = False

    def __call__(self, given: Given) -> tuple[ClosedJaxpr, Given]:
        if not self.takes_zeros or (self.is_late and tuple(given) not in self.found):
            given = self._all()
        if tuple(given) not in self.found:
            self.found[tuple(given)] = self._traced(given)
        found = self.found[tuple(given)]
        if isinstance(found, Exception):
            raise found
        return found, given

    def settle(self) -> None:
        """Traces what may be asked for later, since then it will be too late."""
        if not self.is_late and tuple(self._all()) not in self.found:
            try:
                self(self._all())
            except Exception as e:
                self.found[tuple(self._all())] = e
        self.is_late = True

    def _all(self) -> Given:
        return [True for aval in self.outs if is_inexact(aval)]

    def _traced(self, given: Given) -> ClosedJaxpr:
        flags = iter(given)
        present = [is_inexact(aval) and next(flags) for aval in self.outs]

        def rule(*args: Any) -> list[Any]:
            residuals = [self.known.get(i, x) for i, x in enumerate(args[: len(self.residual_avals)])]
            rest = iter(args[len(self.residual_avals) :])
            cotangents = [
                next(rest) if p else self._zero(aval) for p, aval in zip(present, self.outs, strict=True)
            ]
            results = self.bwd.call_wrapped(*residuals, *cotangents)
            if _RETURNS_LOGS:
                results, _ = results
            found = zip(results, self.wanted, strict=True)
            return [instantiated(ct, aval) for ct, aval in found if aval is not None]

        avals = [*self.residual_avals, *(aval for p, aval in zip(present, self.outs, strict=True) if p)]
        with self.ctx.manager:
            return _checked(jax.make_jaxpr(rule)(*(a.strip_weak_type() for a in avals)))

    def _zero(self, aval: Any) -> Any:
        if self.takes_zeros:
            return internals.SymbolicZero(aval.to_ct_aval())
        return np.zeros(aval.shape, float0)


def _checked(rule: ClosedJaxpr) -> ClosedJaxpr:
    """Rules are traced when the function's own trace is over. Values of traces around are still there."""
    for value in rule.consts:
        if is_dead(value):
            raise TracingError(
                f"a derivative rule closes over a traced value ({value.aval.str_short()}): pass it to the "
                "function that has the rule as an argument, or from its forward rule as a residual"
            )
    return rule
