"""Which equations of a jaxpr no Program can hold, though JAX can bind them, and why.

Those between devices, those that call Python, those of primitives that are not JAX's, and those with a rule
for batches of the user's. Others are found by trying: see `refusal`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from ..errors import TracingError, UnsupportedPrimitive
from ..frontend.adapter import (
    custom_rules,
    devices,
    effects,
    equation_parameters,
    high_primitives,
    jaxprs,
    next_objects,
    packages,
    registry,
    source,
)
from ..frontend.primitives import DECOMPOSITIONS, LOWERINGS
from ..ir.deferred import RULE_ORDER


@dataclass(frozen=True)
class Where:
    """Where an equation stands.

    rules: the derivative rules that the user gave it count, too, which are traced for that.
    package_rules: loops of packages remain what these make of them, as for `bridge`.
    in_jaxs_loop: in a loop that JAX binds.
    inside: in another equation, which would be in a Program as a whole.
    order: how many rules it is nested in, as in `Lowering`.
    """

    rules: bool
    package_rules: bool
    in_jaxs_loop: bool = False
    inside: bool = False
    order: int = 0

    def writes_out(self, eqn) -> bool:
        """Whether a package's primitive is in a Program what it is where nothing is batched.

        Those of a loop belong together: they make its items wait for each other. Those outside of other
        equations may keep a condition the same for a batch, on which JAX calls Python or runs a loop.
        """
        is_part = self.inside and not self.in_jaxs_loop
        if packages.has_definition(eqn):
            return is_part
        if self.package_rules:
            return False
        if packages.is_solver(eqn):  # what it raises has been deferred, if it can be
            return not packages.holds_errors(eqn)
        return packages.is_one_way(eqn) and (is_part or not jaxprs.is_inexact(eqn.invars[0].aval))


def reason_for_jax(eqn, where: Where) -> str | None:
    """Why JAX is to bind the equation, be it for one in its bodies; None if nothing is known for that."""
    eqn = next_objects.counterpart(eqn)
    own = _own_reason(eqn, where)
    if own is not None:
        return f"{eqn.primitive}{_at(eqn)} {own}"
    within = where if eqn.primitive.name in equation_parameters.CALLS else replace(where, inside=True)
    inside = (reason_for_jax(inner, within) for body in _bodies(eqn) for inner in body.eqns)
    found = next((reason for reason in inside if reason is not None), None)
    if found is None and where.rules and where.order < RULE_ORDER:
        return _reason_in_rules(eqn, where)
    return found


def _own_reason(eqn, where: Where) -> str | None:
    """For what the equation is without its bodies."""
    if eqn.primitive.name in devices.COLLECTIVES:
        return "is between devices"
    if is_of_others(eqn.primitive) and not where.writes_out(eqn):
        return "is a package's, with rules of its own"
    if where.package_rules and packages.ends_early(eqn):
        return "ends early for a batch as a whole"
    if effects.is_bound_by_jax(eqn):
        return "calls Python"
    if jaxprs.has_high_types(eqn):
        return "has objects for operands or results"
    if equation_parameters.differs_by_platform(eqn):
        return "differs by platform"
    return None


def _at(eqn) -> str:
    line = source.line_of(eqn)
    return f" at {line}" if line else ""


def is_unknown(primitive) -> bool:
    """Whether no table says what becomes of it in a Program."""
    return primitive.name not in LOWERINGS and primitive.name not in DECOMPOSITIONS


def is_of_others(primitive) -> bool:
    """Whether a package defines it, which is known without trying."""
    return is_unknown(primitive) and not registry.is_of_jax(primitive)


def refusal(lower: Callable[[Any, str], Any], jaxpr) -> str | None:
    """Why no Program is made of the jaxpr, if none is: its lowering lacks a primitive, what a parameter asks
    for, or a dtype; or a function inside closes over values that are being traced."""
    try:
        lower(jaxpr, "refused")
    except (UnsupportedPrimitive, TracingError) as e:
        return str(e).partition(". ")[0]  # what follows is advice
    return None


def _bodies(eqn) -> list:
    if not next_objects.is_high(eqn):
        return jaxprs.bodies(eqn)
    return [high_primitives.expansion(eqn)] if high_primitives.has_value(eqn) else []


def _reason_in_rules(eqn, where: Where) -> str | None:
    """Of a custom function's derivative rules. What refuses to be traced for all operands is for JAX."""
    try:
        bodies = list(_rules(eqn))
    except Exception as e:  # whatever the user's code raises
        return f"{eqn.primitive}{_at(eqn)} has a rule that cannot be traced for all operands ({e})"
    deeper = replace(where, order=where.order + 1)
    inside = (reason_for_jax(inner, deeper) for body in bodies for inner in body.eqns)
    return next((reason for reason in inside if reason is not None), None)


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
