"""Which equations of a jaxpr no Program can hold, though JAX can bind them.

Those between devices, those that call Python, and those of primitives that are not JAX's.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..frontend import custom_rules, devices, effects, jaxprs, registry
from ..pending import RULE_ORDER
from ..primitives import DECOMPOSITIONS, LOWERINGS


def is_beyond(eqn, rules: bool, order: int = 0) -> bool:
    """Whether the equation, or one in its bodies, is such a one.

    rules: look into the derivative rules that the user gave it, too, which are traced for that.
    order: how many rules this equation is nested in, as in `Lowering`.
    """
    if eqn.primitive.name in devices.COLLECTIVES or is_of_others(eqn.primitive):
        return True
    if effects.is_bound_by_jax(eqn):
        return True
    if any(is_beyond(inner, rules, order) for body in jaxprs.bodies(eqn) for inner in body.eqns):
        return True
    return rules and order < RULE_ORDER and _has_rules_beyond(eqn, order)


def is_of_others(primitive) -> bool:
    """What packages define has rules of its own, which JAX applies; of what JAX lacks here a user is told."""
    known = primitive.name in LOWERINGS or primitive.name in DECOMPOSITIONS
    return not known and not registry.is_of_jax(primitive)


def _has_rules_beyond(eqn, order: int) -> bool:
    """Of a custom function's derivative rules. What refuses to be traced for all operands is for JAX."""
    try:
        bodies = list(_rules(eqn))
    except Exception:  # whatever the user's code raises
        return True
    return any(is_beyond(inner, True, order + 1) for body in bodies for inner in body.eqns)


def _rules(eqn) -> Iterator:
    """The jaxprs of a custom function's derivative rules."""
    if eqn.primitive.name == "custom_jvp_call":
        rules = custom_rules.custom_jvp(eqn)
        yield rules.rule(_inexact(eqn.invars[rules.consts :]))[0]
    elif eqn.primitive.name == "custom_vjp_call":
        rules = custom_rules.custom_vjp(eqn)
        rule = rules.rule(_inexact(eqn.invars[rules.consts :]))
        yield rule.forward
        yield rule.backward([True for v in eqn.outvars if jaxprs.is_inexact(v.aval)])[0]


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
