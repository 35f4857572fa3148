"""The user's derivative rules, of `jax.custom_jvp` and `jax.custom_vjp`.

A jaxpr holds a rule as a function that traces it on demand, for a given choice of the operands that are
perturbed (those that have a tangent at all): of the others it is told that their tangents are zero.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from . import internals
from .jaxprs import ClosedJaxpr, constants, float0, is_inexact, is_var, outputs

_RETURNS_LOGS = jax.__version_info__ >= (0, 11)
"""Since this JAX a backward rule returns the cotangents and what it logs."""

Perturbed = list[bool]
"""For each operand after the constants whether it is."""


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


@dataclass(frozen=True)
class VjpRule:
    """forward: (operands after the first `skipped`...) -> (own residuals..., y...).

    residuals: of all residuals, None for the next of the rule's own, else the number of the operand
        (constants counted) that is the residual.
    covered: for each operand whether the rule is about it, not about a function that closes over it.
    backward: (residuals..., cotangents of the inexact y...) -> (cotangents of the inexact covered x...).
    """

    forward: ClosedJaxpr
    skipped: int
    residuals: list[int | None]
    covered: list[bool]
    backward: ClosedJaxpr


@dataclass(frozen=True)
class CustomVjp:
    """As `CustomJvp`, of a rule in two parts."""

    call: Any
    consts: int
    rule: Callable[[Perturbed], VjpRule]
    symbolic_zeros: bool


def custom_jvp(eqn: Any) -> CustomJvp:
    params = eqn.params

    def rule(perturbed: Perturbed) -> tuple[ClosedJaxpr, list[bool]]:
        jaxpr, consts, out_zeros = params["jvp_jaxpr_fun"].call_wrapped(*(not p for p in perturbed))
        return ClosedJaxpr(jaxpr, consts), list(out_zeros)

    return CustomJvp(params["call_jaxpr"], int(params["num_consts"]), rule, bool(params["symbolic_zeros"]))


def custom_vjp(eqn: Any) -> CustomVjp:
    params = eqn.params
    consts, symbolic_zeros = int(params["num_consts"]), bool(params["symbolic_zeros"])
    avals = [v.aval for v in eqn.invars]

    def rule(perturbed: Perturbed) -> VjpRule:
        flags = perturbed if symbolic_zeros else [_Unperturbed() for _ in perturbed]
        jaxpr, values = params["fwd_jaxpr_thunk"].call_wrapped(*flags)
        forward = ClosedJaxpr(jaxpr, values)
        covered = [not isinstance(flag, _Unperturbed) or not flag.asked for flag in flags]
        _, _, residuals = params["out_trees"]()
        own = iter(forward.out_avals)
        residual_avals = [next(own) if r is None else avals[r] for r in residuals]
        wanted = [a if c and is_inexact(a) else None for c, a in zip(covered, avals[consts:], strict=True)]
        outs = [v.aval for v in eqn.outvars]
        known = _known(forward, residuals)
        pullback = backward(params["bwd"], residual_avals, outs, wanted, known)
        return VjpRule(forward, consts, list(residuals), [False] * consts + covered, pullback)

    return CustomVjp(params["call_jaxpr"], consts, rule, symbolic_zeros)


class _Unperturbed:
    """False for a forward rule that does not ask.

    When JAX traces a call again, as under vmap, what its function closed over comes among the operands. Of
    those alone JAX asks, and refuses a derivative by them; the user's rule sees no flags.
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

    The operands are `residuals` of these, then tangents. backward: as in `VjpRule`, for these operands.
    """

    residuals: int
    backward: ClosedJaxpr


def custom_lin(eqn: Any) -> CustomLin:
    params = eqn.params
    residuals = int(params["num_res"])
    avals = [v.aval for v in eqn.invars]
    tangents = iter(avals[residuals:])
    wanted = [None if zero else next(tangents) for zero in params["in_zeros"]]
    outs = [v.aval for v in eqn.outvars]
    known = {i: atom.val for i, atom in enumerate(eqn.invars[:residuals]) if not is_var(atom)}
    return CustomLin(residuals, backward(params["bwd"], avals[:residuals], outs, wanted, known))


def backward(
    bwd: Any,
    residual_avals: Sequence[Any],
    out_avals: Sequence[Any],
    wanted: Sequence[Any],
    known: Mapping[int, Any],
) -> ClosedJaxpr:
    """The backward rule: (residuals..., cotangents of the inexact y...) -> (cotangents of the wanted x...).

    wanted: for each x its aval if a cotangent is wanted, else None. known: the values of residuals that have
    one when the rule is traced. Must follow the forward rule, which tells JAX how the residuals are grouped.
    """
    inexact = [is_inexact(aval) for aval in out_avals]

    def rule(*args: Any) -> list[Any]:
        residuals = [known.get(i, x) for i, x in enumerate(args[: len(residual_avals)])]
        given = iter(args[len(residual_avals) :])
        cotangents = [
            next(given) if i else np.zeros(aval.shape, float0)
            for i, aval in zip(inexact, out_avals, strict=True)
        ]
        results = bwd.call_wrapped(*residuals, *cotangents)
        if _RETURNS_LOGS:
            results, _ = results
        return [
            instantiated(ct, aval) for ct, aval in zip(results, wanted, strict=True) if aval is not None
        ]

    avals = [*residual_avals, *(aval for i, aval in zip(inexact, out_avals, strict=True) if i)]
    return jax.make_jaxpr(rule)(*(a.strip_weak_type() for a in avals))


def instantiated(tangent: Any, aval: Any) -> Any:
    """The tangent or cotangent of a value of that type as an array."""
    if isinstance(tangent, internals.Zero | internals.SymbolicZero):
        return jnp.zeros(aval.shape, aval.dtype)
    return jax.lax.convert_element_type(tangent, aval.dtype)
