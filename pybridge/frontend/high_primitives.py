"""Primitives that are objects (`HiPrim`, `VJPHiPrimitive`): JAX's own, and those that users define.

Such an object has its value in other primitives (`expand`) and its derivatives by the methods that its class
overrides: `jvp`, `lin` with `linearized`, or `vjp_fwd` with `vjp_bwd`. These take pytrees; an operand that
is not perturbed has a symbolic zero for its tangent in them.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import jax

from . import internals
from .custom_rules import CustomJvp, CustomVjp, Given, Perturbed, VjpRule, instantiated
from .jaxprs import ClosedJaxpr, is_inexact, traced


def primitive_of(eqn: Any) -> Any:
    return eqn.params["_prim"]


def expansion(eqn: Any) -> ClosedJaxpr:
    """The value in other primitives."""
    prim = primitive_of(eqn)

    def expand(*flat: Any) -> list[Any]:
        return prim.out_tree.flatten_up_to(prim.expand(*_arguments(prim, flat)))

    return traced(expand, [v.aval for v in eqn.invars])


_CONSTANTS_FIRST = jax.__version_info__ >= (0, 11)
"""Since this JAX the first operand of a custom_vjp function that is an object is what it closes over."""


def rules(eqn: Any) -> CustomJvp | CustomVjp | None:
    """The primitive's own derivative, or None where its class has none.

    Of the interfaces that it has, forward mode comes first, since reverse mode follows from it.
    """
    prim = primitive_of(eqn)
    if isinstance(prim, internals.CustomVJPTraced):
        consts = prim.in_tree.children()[0].num_leaves if _CONSTANTS_FIRST else 0
        return CustomVjp(expansion(eqn), consts, _vjp_rule(eqn, prim, consts), bool(prim.symbolic_zeros))
    if _overrides(prim, "jvp"):
        return CustomJvp(expansion(eqn), 0, _jvp_rule(eqn, prim, _by_jvp), True)
    if _overrides(prim, "lin"):
        return CustomJvp(expansion(eqn), 0, _jvp_rule(eqn, prim, _by_linearization), True)
    if _overrides(prim, "vjp_fwd"):
        return CustomVjp(expansion(eqn), 0, _vjp_rule(eqn, prim, 0), True)
    return None


def _overrides(prim: Any, method: str) -> bool:
    return getattr(type(prim), method) is not getattr(internals.HiPrim, method)


def _arguments(prim: Any, flat: Sequence[Any]) -> tuple:
    return jax.tree.unflatten(prim.in_tree, flat)


def _is_zero(tangent: Any) -> bool:
    return isinstance(tangent, internals.Zero | internals.SymbolicZero)


def _zero(aval: Any) -> Any:
    return internals.Zero(aval.to_tangent_aval())


# Forward mode


def _by_jvp(prim: Any, perturbed: Sequence[bool], primals: tuple, tangents: tuple) -> tuple[Any, Any]:
    return prim.jvp(primals, tangents)


def _by_linearization(prim: Any, perturbed: Sequence[bool], primals: tuple, tangents: tuple):
    values, residuals, *rest = prim.lin(_arguments(prim, perturbed), *primals)
    structured = rest[1:2]
    return values, prim.linearized(residuals, *structured, *tangents)


def _jvp_rule(eqn: Any, prim: Any, derivative: Any):
    avals = [v.aval for v in eqn.invars]

    def rule(perturbed: Perturbed) -> tuple[ClosedJaxpr, list[bool]]:
        zeros: list[bool] = []

        def run(*args: Any) -> list[Any]:
            primals, given = args[: len(avals)], iter(args[len(avals) :])
            tangents = [next(given) if p else _zero(a) for p, a in zip(perturbed, avals, strict=True)]
            values, dots = derivative(prim, perturbed, _arguments(prim, primals), _arguments(prim, tangents))
            flat = prim.out_tree.flatten_up_to(dots)
            zeros[:] = map(_is_zero, flat)
            return [*prim.out_tree.flatten_up_to(values), *(dot for dot in flat if not _is_zero(dot))]

        tangent_avals = [a.to_tangent_aval() for a in itertools.compress(avals, perturbed)]
        return traced(run, [*avals, *tangent_avals]), zeros

    return rule


# Reverse mode


def _vjp_rule(eqn: Any, prim: Any, consts: int):
    avals, outs = [v.aval for v in eqn.invars], [v.aval for v in eqn.outvars]

    def rule(perturbed: Perturbed) -> VjpRule:
        trees: list[Any] = []  # of the residuals, known when the forward rule has been traced
        nonzero: list[bool] = []  # which results have a tangent, according to the forward rule

        def forward(*args: Any) -> list[Any]:
            marks = _arguments(prim, [*[False] * consts, *perturbed])
            values, residuals, *rest = prim.vjp_fwd(marks, *_arguments(prim, args))
            nonzero[:] = _flags(rest[0] if rest else True, prim.out_tree)
            leaves, tree = jax.tree.flatten((residuals, *rest[1:]))
            trees.append(tree)
            return [*leaves, *prim.out_tree.flatten_up_to(values)]

        jaxpr = traced(forward, avals)
        residual_avals = jaxpr.out_avals[: trees[-1].num_leaves]

        def backward(given: Given) -> tuple[ClosedJaxpr, Given]:
            flags = iter(given)
            taken = [is_inexact(aval) and next(flags) for aval in outs]

            def run(*args: Any) -> list[Any]:
                residuals = jax.tree.unflatten(trees[-1], args[: len(residual_avals)])
                rest = iter(args[len(residual_avals) :])
                cotangents = []
                for aval, is_taken, has_tangent in zip(outs, taken, nonzero, strict=True):
                    cotangent = next(rest) if is_taken else None
                    cotangents.append(cotangent if is_taken and has_tangent else _zero(aval))
                sums = [internals.ValAccum(a.to_ct_aval()) for a in avals]
                prim.vjp_bwd(*residuals, prim.out_tree.unflatten(cotangents), *_arguments(prim, sums))
                found = zip(sums[consts:], avals[consts:], perturbed, strict=True)
                return [instantiated(total.freeze(), aval) for total, aval, p in found if p]

            cotangent_avals = [a.to_ct_aval() for a in itertools.compress(outs, taken)]
            return traced(run, [*residual_avals, *cotangent_avals]), given

        own, closed_over = [None] * len(residual_avals), [False] * len(perturbed)
        return VjpRule(jaxpr, 0, own, residual_avals, closed_over, backward)

    return rule


def _flags(given: Any, tree: Any) -> list[bool]:
    """A flag for each leaf of the tree, from one for all or a tree of flags."""
    if isinstance(given, bool):
        return [given] * tree.num_leaves
    parts = given.values() if isinstance(given, dict) else given
    pairs = zip(parts, tree.children(), strict=True)
    return [flag for part, child in pairs for flag in _flags(part, child)]
