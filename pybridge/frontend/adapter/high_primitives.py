"""Primitives that are objects (`HiPrim`, `VJPHiPrimitive`): JAX's own, and those that users define.

Such an object has its value in other primitives (`expand`) and its derivatives by the methods that its class
overrides: `jvp`, `lin` with `linearized`, `vjp_fwd` with `vjp_bwd`, and `transpose`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import jax

from . import batched_rules, high_rules, internals, transposes
from .custom_rules import CustomJvp, CustomLin, CustomVjp, Perturbed
from .high_rules import Flat
from .jaxprs import ClosedJaxpr, is_inexact, traced
from .next_objects import is_a, is_its_value, overrides, primitive_of

Rules = CustomJvp | CustomVjp


def name(eqn: Any) -> str:
    return type(primitive_of(eqn)).__name__


def has_value(eqn: Any) -> bool:
    """Whether the class says what the value is in other primitives."""
    return overrides(primitive_of(eqn), "expand")


def expansion(eqn: Any) -> ClosedJaxpr:
    """The value in other primitives."""
    return _expansion(_flat(eqn))


def rules(eqn: Any) -> Rules | None:
    """The primitive's own derivative, or None where its class has none."""
    return _rules(_flat(eqn))


def _flat(eqn: Any) -> Flat:
    return Flat(primitive_of(eqn), [v.aval for v in eqn.invars], [v.aval for v in eqn.outvars])


def _expansion(flat: Flat) -> ClosedJaxpr:
    return traced(lambda *args: flat.results(flat.prim.expand(*flat.arguments(args))), flat.avals)


def _rules(flat: Flat) -> Rules | None:
    prim = flat.prim
    if is_its_value(prim) or not any(map(is_inexact, flat.outs)):
        return None
    if is_a(prim, internals.VmapOf):
        inner = _rules(Flat(prim.prim, prim.prim.in_avals_flat, prim.prim.out_avals_flat))
        return inner and batched_rules.batched(inner, _expansion(flat), prim)
    if is_a(prim, internals.CustomVJPTraced):
        consts = _closed_over(prim)
        rule = _remembered(functools.partial(high_rules.reverse, flat, consts))
        return CustomVjp(_expansion(flat), consts, rule, bool(prim.symbolic_zeros))
    for forward in _forward_rules(flat):
        if _is_there(forward, flat):
            symbolic_zeros = not is_a(prim, internals.CustomJVPTraced) or bool(prim.symbolic_zeros)
            return CustomJvp(_expansion(flat), 0, forward, symbolic_zeros)
    if _has_reverse(prim):
        reverse = _remembered(functools.partial(high_rules.reverse, flat, 0))
        if _is_there(reverse, flat):
            return CustomVjp(_expansion(flat), 0, reverse, True)
    return None


def _closed_over(prim: Any) -> int:
    """How many leading operands of a custom_vjp function it closes over; before JAX 0.11 it may not."""
    return prim.in_tree.children()[0].num_leaves if hasattr(prim, "drop_fwd_consts") else 0


def _forward_rules(flat: Flat) -> Iterator[Callable[[Perturbed], tuple[ClosedJaxpr, list[bool]]]]:
    """The rules for forward mode, from which reverse mode follows; with the class's own for it, if any."""
    for made in (high_rules.both, high_rules.forward) if _has_reverse(flat.prim) else (high_rules.forward,):
        for derivative in _derivatives(flat.prim):
            yield _remembered(functools.partial(_with_transposes, made, flat, derivative))


def _with_transposes(made: Any, flat: Flat, derivative: Any, perturbed: Perturbed):
    jaxpr, zeros = made(flat, derivative, perturbed)
    return transposes.kept(jaxpr, [False] * len(flat.avals) + [True] * sum(perturbed)), zeros


def _derivatives(prim: Any) -> Iterator[high_rules.Derivative]:
    there_to_fail = is_a(prim, internals.PrimalLeftTangentRight)
    if overrides(prim, "jvp") and not there_to_fail:
        yield high_rules.by_jvp
    if overrides(prim, "lin"):
        yield high_rules.by_linearization


def _has_reverse(prim: Any) -> bool:
    """Whether the class has a rule for reverse mode that is not made of another rule of its own."""
    made = [pair.vjp_fwd for pair in (internals.vjp_from_jvp, internals.vjp_from_lin) if pair is not None]
    return overrides(prim, "vjp_fwd") and type(prim).vjp_fwd not in made


def _remembered(rule: Callable[[Perturbed], Any]) -> Callable[[Perturbed], Any]:
    cached = functools.cache(lambda perturbed: rule(list(perturbed)))
    return lambda perturbed: cached(tuple(perturbed))


def _is_there(rule: Callable[[Perturbed], Any], flat: Flat) -> bool:
    """Whether the methods that the rule calls do more than say that they are not implemented."""
    try:
        rule(list(map(is_inexact, flat.avals)))
    except NotImplementedError:
        return False
    except Exception:  # of the user's code, for these operands; reported where the rule is needed
        return True
    return True


def linear_part(eqn: Any) -> CustomLin:
    """Of the linear part of such a primitive, which was differentiated before it was traced.

    Operands and results that are tangents of integers are no operands and results of its backward rule.
    """
    params = eqn.params
    prim, tree = primitive_of(eqn), params["residuals_tree"]
    flat = Flat(prim, prim.in_avals_flat, prim.out_avals_flat)
    active = list(params["nz_in_flat"])
    nonzero = list(params.get("nz_out_flat", [True] * len(flat.outs)))
    given = [n and is_inexact(out) for n, out in zip(nonzero, flat.outs, strict=True)]
    wanted = [m and is_inexact(a) for m, a in zip(active, flat.avals, strict=True)]
    structure = tree if params.get("has_sres") else jax.tree_util.treedef_tuple([tree])
    residuals = high_rules.Residuals(structure, [v.aval for v in eqn.invars[: tree.num_leaves]])
    pullback = high_rules.pullback(flat, residuals, given, nonzero, active, wanted)
    return CustomLin(residuals.avals, pullback)
