"""Which equations of a jaxpr no Program can hold, though JAX can bind them.

Those between devices, those that call Python, and those of primitives that are not JAX's.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..frontend.adapter import (
    custom_rules,
    devices,
    effects,
    equation_parameters,
    high_primitives,
    jaxprs,
    next_objects,
    registry,
)
from ..frontend.primitives import DECOMPOSITIONS, LOWERINGS
from ..ir.deferred import RULE_ORDER


def needs_jax(eqn, rules: bool, order: int = 0) -> bool:
    """Whether the equation, or one in its bodies, is such a one.

    rules: look into the derivative rules that the user gave it, too, which are traced for that.
    order: how many rules this equation is nested in, as in `Lowering`.
    """
    eqn = next_objects.counterpart(eqn)
    if eqn.primitive.name in devices.COLLECTIVES or is_of_others(eqn.primitive):
        return True
    if effects.is_bound_by_jax(eqn) or jaxprs.has_high_types(eqn):
        return True
    if equation_parameters.differs_by_platform(eqn):
        return True
    if any(needs_jax(inner, rules, order) for body in _bodies(eqn) for inner in body.eqns):
        return True
    return rules and order < RULE_ORDER and _has_rules_that_need_jax(eqn, order)


def is_of_others(primitive) -> bool:
    """What packages define has rules of its own, which JAX applies; of what JAX lacks here a user is told."""
    known = primitive.name in LOWERINGS or primitive.name in DECOMPOSITIONS
    return not known and not registry.is_of_jax(primitive)


def _bodies(eqn) -> list:
    if not next_objects.is_high(eqn):
        return jaxprs.bodies(eqn)
    return [high_primitives.expansion(eqn)] if high_primitives.has_value(eqn) else []


def _has_rules_that_need_jax(eqn, order: int) -> bool:
    """Of a custom function's derivative rules. What refuses to be traced for all operands is for JAX."""
    try:
        bodies = list(_rules(eqn))
    except Exception:  # whatever the user's code raises
        return True
    return any(needs_jax(inner, True, order + 1) for body in bodies for inner in body.eqns)


def _rules(eqn) -> Iterator:
    """The jaxprs of the equation's own derivative rules."""
    rules = high_primitives.rules(eqn) if next_objects.is_high(eqn) else custom_rules.of(eqn)
    if rules is None:
        return
    perturbed = _inexact(eqn.invars[rules.consts :])
    if isinstance(rules, custom_rules.CustomJvp):
        yield rules.rule(perturbed)[0]
    else:
        found = rules.rule(perturbed)
        yield found.forward
        yield found.backward([True for v in eqn.outvars if jaxprs.is_inexact(v.aval)])[0]


def _inexact(variables) -> list[bool]:
    return [jaxprs.is_inexact(v.aval) for v in variables]


def varying_axes(eqn, used: set) -> frozenset | None:
    """The mesh axes over which the results that are used vary; None if no Program has such results.

    All results of a Program vary over all the axes over which one of its operands does.
    """
    operands = frozenset().union(*(devices.varying(v.aval) for v in eqn.invars))
    results = {devices.varying(v.aval) for v in eqn.outvars if v in used} or {operands}
    axes = results.pop()
    return axes if not results and operands <= axes else None
