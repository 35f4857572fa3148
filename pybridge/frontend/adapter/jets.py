"""Taylor series, by `jax.experimental.jet`, of primitives that stand for others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from jax.experimental import jet

from .jaxprs import at_places, is_inexact


def register(primitive: Any, definition: Callable[..., Callable]) -> None:
    """definition: parameters of the primitive -> what it does, in operations of JAX."""

    def rule(primals: Sequence[Any], series: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        active = [i for i, x in enumerate(primals) if is_inexact(x)]
        of_active = at_places(definition(**params), active, primals)
        given = [primals[i] for i in active], [series[i] for i in active]
        values, terms = jet.jet(of_active, *map(tuple, given), factorial_scaled=False)  # as rules have them
        return list(values), list(terms)

    jet.jet_rules[primitive] = rule
