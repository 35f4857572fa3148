"""Primitives that JAX itself defines by others, or this package."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import gradients, internals
from .jaxprs import ClosedJaxpr, defined_by


def definition(eqn: Any) -> ClosedJaxpr:
    """What an equation of one of `DEFINED` does, in other primitives, as it is lowered."""
    return defined_by(eqn, _DEFINITIONS[eqn.primitive.name])


def _ragged_dot_general(*operands: Any, **params: Any) -> Any:
    return internals.ragged_dot_general_impl(*operands, **params)


def _symmetric_product(*operands: Any, **params: Any) -> Any:
    return internals.symmetric_product_jax_fn(*operands, **params)


def _run_state(*operands: Any, **params: Any) -> Any:
    return internals.run_state_p.impl(*operands, **params)


_DEFINITIONS: dict[str, Callable[..., Any]] = {
    "run_state": _run_state,
    "ragged_dot_general": _ragged_dot_general,
    "symmetric_product": _symmetric_product,
    "gradient_product": gradients.along,
    "scaled_gradient": gradients.scaled_anew,
}

DEFINED = tuple(_DEFINITIONS)
