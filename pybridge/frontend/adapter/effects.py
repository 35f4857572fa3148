"""Side effects of equations: prints, callbacks and checks, which JAX can bind between Programs."""

from __future__ import annotations

from typing import Any

from . import internals, jaxprs

_HOST_CALLS = ("pure_callback", "ffi_call")
"""Primitives without an effect, or with one that does not say what it is, that run code of the user's."""


def is_bound_by_jax(eqn: Any) -> bool:
    """Whether the equation, or one in it, is a print, a callback or a check, which JAX has rules for."""
    return eqn.primitive.name in _HOST_CALLS or any(isinstance(e, _bound_effects()) for e in eqn.effects)


def first_bound_by_jax(jaxpr: Any) -> Any | None:
    """The first print, callback or check of the jaxpr and its bodies, if there is one."""
    for eqn in getattr(jaxpr, "jaxpr", jaxpr).eqns:
        inside = (first_bound_by_jax(body) for body in jaxprs.bodies(eqn))
        found = next((e for e in inside if e is not None), None)
        if found is not None or is_bound_by_jax(eqn):
            return found or eqn
    return None


def _bound_effects() -> tuple[type, ...]:
    return internals.DebugEffect, internals.OrderedDebugEffect, internals.ErrorEffect


def has_effect(eqn: Any) -> bool:
    """Whether it matters that the equation runs, and when; that it needs a named axis is no such effect."""
    return any(not isinstance(e, internals.NamedAxisEffect) for e in eqn.effects)
