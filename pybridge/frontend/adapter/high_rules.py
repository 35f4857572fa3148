"""The derivative rules of primitives that are objects, as functions of arrays.

The methods of such a primitive take and return pytrees, with a symbolic zero for the tangent of what is not
perturbed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

import jax

from . import internals
from .custom_rules import Given, Perturbed, Pullback, VjpRule
from .jaxprs import ClosedJaxpr, instantiated, is_inexact, is_zero, jaxpr_as_fun, traced
from .linear_map import linear_map


@dataclass(frozen=True)
class Flat:
    """A primitive, and the types of its operands and results."""

    prim: Any
    avals: Sequence[Any]
    outs: Sequence[Any]

    def arguments(self, flat: Iterable[Any]) -> tuple:
        return jax.tree.unflatten(self.prim.in_tree, flat)

    def results(self, tree: Any) -> list[Any]:
        return self.prim.out_tree.flatten_up_to(tree)

    def tangents(self, perturbed: Perturbed, given: Iterable[Any]) -> tuple:
        """given: the tangents of the perturbed operands."""
        given = iter(given)
        pairs = zip(perturbed, self.avals, strict=True)
        return self.arguments(next(given) if p else _zero(a.to_tangent_aval()) for p, a in pairs)

    def tangent_avals(self, perturbed: Perturbed) -> list[Any]:
        return [a.to_tangent_aval() for a in compress(self.avals, perturbed)]


# Forward mode

Derivative = Callable[[Any, tuple, tuple, tuple], tuple[Any, Any]]
"""(primitive, which operands are perturbed, operands, their tangents) -> (results, their tangents)."""


def by_jvp(prim: Any, perturbed: tuple, primals: tuple, tangents: tuple) -> tuple[Any, Any]:
    return prim.jvp(primals, tangents)


def by_linearization(prim: Any, perturbed: tuple, primals: tuple, tangents: tuple) -> tuple[Any, Any]:
    values, residuals, *rest = prim.lin(perturbed, *primals)
    structured = rest[1:2]
    return values, prim.linearized(residuals, *structured, *tangents)


def forward(flat: Flat, derivative: Derivative, perturbed: Perturbed) -> tuple[ClosedJaxpr, list[bool]]:
    """As `CustomJvp.rule`."""
    zeros: list[bool] = []

    def run(*args: Any) -> list[Any]:
        primals, given = args[: len(flat.avals)], args[len(flat.avals) :]
        values, tangents = derivative(
            flat.prim, flat.arguments(perturbed), flat.arguments(primals), flat.tangents(perturbed, given)
        )
        dots = flat.results(tangents)
        zeros[:] = [is_zero(dot) or not is_inexact(out) for dot, out in zip(dots, flat.outs, strict=True)]
        return [*flat.results(values), *(dot for dot, zero in zip(dots, zeros, strict=True) if not zero)]

    return traced(run, [*flat.avals, *flat.tangent_avals(perturbed)]), zeros


# Reverse mode


def reverse(flat: Flat, consts: int, perturbed: Perturbed) -> VjpRule:
    """As `CustomVjp.rule`, of a primitive that closes over its first `consts` operands."""
    active = [*[False] * consts, *perturbed]
    trees: list[Any] = []
    nonzero: list[bool] = []

    def run(*args: Any) -> list[Any]:
        values, residuals, *rest = flat.prim.vjp_fwd(flat.arguments(active), *flat.arguments(args))
        nonzero[:] = leaves_of(rest[0] if rest else True, flat.prim.out_tree)
        leaves, tree = jax.tree.flatten((residuals, *rest[1:]))
        trees.append(tree)
        return [*leaves, *flat.results(values)]

    jaxpr = traced(run, flat.avals)
    residuals = jaxpr.out_avals[: trees[-1].num_leaves]
    inexact = list(map(is_inexact, flat.outs))
    back = pullback(flat, Residuals(trees[-1], residuals), inexact, nonzero, active, active)
    # That of `jax.custom_vjp`, where JAX has it as such a primitive.
    for_residuals = bool(getattr(flat.prim, "opt_remat", False))
    return VjpRule(
        jaxpr, 0, [None] * len(residuals), residuals, [False] * len(perturbed), back, for_residuals
    )


@dataclass(frozen=True)
class Residuals:
    """Their structure and types; in the structure are the leading arguments of `vjp_bwd`."""

    tree: Any
    avals: Sequence[Any]


def pullback(
    flat: Flat,
    residuals: Residuals,
    inexact: Sequence[bool],
    nonzero: Sequence[bool],
    active: Sequence[bool],
    wanted: Sequence[bool],
) -> Pullback:
    """The rule that gives the cotangents of the wanted operands, for cotangents of the `inexact` results.

    nonzero: which results have a tangent at all. active: which operands have one.
    """

    def traced_for(flags: Given) -> tuple[ClosedJaxpr, Given]:
        rest = iter(flags)
        given = [i and next(rest) for i in inexact]
        avals = [*residuals.avals, *(out.to_ct_aval() for out in compress(flat.outs, given))]
        return traced(functools.partial(run, given), avals), flags

    def run(given: Sequence[bool], *args: Any) -> list[Any]:
        known, cotangents = args[: len(residuals.avals)], iter(args[len(residuals.avals) :])
        seen = []
        for out, has, is_nonzero in zip(flat.outs, given, nonzero, strict=True):
            cotangent = next(cotangents) if has else None
            seen.append(cotangent if has and is_nonzero else _zero(out.to_ct_aval()))
        results = flat.prim.out_tree.unflatten(seen)
        known = jax.tree.unflatten(residuals.tree, known)
        totals = accumulated(flat, active, lambda sums: flat.prim.vjp_bwd(*known, results, *sums))
        return [instantiated(t, a) for t, a, w in zip(totals, flat.avals, wanted, strict=True) if w]

    return traced_for


def accumulated(flat: Flat, active: Sequence[bool], rule: Callable[[tuple], Any]) -> list[Any]:
    """The cotangents of all operands, which the rule adds to accumulators; zeros of those not active."""
    sums = [
        (internals.ValAccum if m else internals.NullAccum)(a.to_ct_aval())
        for m, a in zip(active, flat.avals, strict=True)
    ]
    rule(flat.arguments(sums))
    return [total.freeze() if m else _zero(total.aval) for total, m in zip(sums, active, strict=True)]


# Both


def both(flat: Flat, derivative: Derivative, perturbed: Perturbed) -> tuple[ClosedJaxpr, list[bool]]:
    """As `CustomJvp.rule`, of a class with a rule for either mode: the tangents are linear in those of the
    operands by the one, and transposed by the other."""
    push, zeros = forward(flat, derivative, perturbed)
    pull = reverse(flat, 0, perturbed)
    given = [not zero for zero, out in zip(zeros, flat.outs, strict=True) if is_inexact(out)]
    back, _ = pull.backward(given)
    own, n = len(pull.residuals), len(flat.avals)

    def tangents_of(*args: Any) -> list[Any]:
        return jaxpr_as_fun(push)(*args[:n], *args[n + own :])[len(flat.outs) :]

    def cotangents_of(*args: Any) -> list[Any]:
        return jaxpr_as_fun(back)(*args[n:])

    def run(*args: Any) -> list[Any]:
        primals, tangents = args[:n], args[n:]
        found = jaxpr_as_fun(pull.forward)(*primals)
        known = *primals, *found[:own]
        return [*found[own:], *linear_map(tangents_of, cotangents_of, known, tangents)]

    return traced(run, [*flat.avals, *flat.tangent_avals(perturbed)]), zeros


def leaves_of(given: Any, tree: Any) -> list[Any]:
    """What belongs to each leaf of the tree, from one thing for all, or for each of its subtrees; or None."""
    full = tree.unflatten([0] * tree.num_leaves)
    return tree.flatten_up_to(jax.tree.broadcast(given, full, is_leaf=lambda x: x is None))


def _zero(aval: Any) -> Any:
    return internals.Zero(aval)
