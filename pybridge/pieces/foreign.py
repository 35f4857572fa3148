"""Which equations of a jaxpr no Program can hold, though JAX can bind them."""

from __future__ import annotations

from collections.abc import Iterator

from .. import compat
from ..primitives import DECOMPOSITIONS, LOWERINGS
from ..primitives.control import RULE_ORDER


def is_beyond(eqn, order: int = 0) -> bool:
    """Whether the equation is between devices, or of a primitive that is not JAX's; or one of those in it.

    In it are its bodies and the derivative rules that the user gave it.

    order: how many rules this equation is nested in, as in `Lowering`.
    """
    if eqn.primitive.name in compat.COLLECTIVES or is_of_others(eqn.primitive):
        return True
    return any(is_beyond(inner, order) for body in compat.bodies(eqn) for inner in body.eqns) or any(
        is_beyond(inner, order + 1) for body in _rules(eqn, order) for inner in body.eqns
    )


def is_of_others(primitive) -> bool:
    """What packages define has rules of its own, which JAX applies; of what JAX lacks here a user is told."""
    known = primitive.name in LOWERINGS or primitive.name in DECOMPOSITIONS
    return not known and not compat.is_of_jax(primitive)


def _rules(eqn, order: int) -> Iterator:
    """The jaxprs of a custom function's derivative rules; where no axis has a name they cannot speak."""
    if order >= RULE_ORDER or not compat.in_named_axes():
        return
    if eqn.primitive.name == "custom_jvp_call":
        inexact = [compat.is_inexact(v.aval) for v in eqn.invars]
        yield compat.jvp_rule(eqn, inexact[eqn.params["num_consts"] :])[0].jaxpr
    elif eqn.primitive.name == "custom_vjp_call":
        forward, _, backward = compat.vjp_rules(eqn)
        yield from (forward.jaxpr, backward.jaxpr)


def varying_axes(eqn, used: set) -> frozenset | None:
    """The mesh axes over which the results that are used vary; None if no Program has such results.

    All results of a Program vary over all the axes over which one of its operands does.
    """
    operands = frozenset().union(*(compat.varying(v.aval) for v in eqn.invars))
    results = {compat.varying(v.aval) for v in eqn.outvars if v in used} or {operands}
    axes = results.pop()
    return axes if not results and operands <= axes else None
