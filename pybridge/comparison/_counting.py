"""The size of what JAX makes for a VJP, to compare with a derivative Program's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax

from ._problem import Problem

_CALLS = {"jit", "pjit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call"}


def jax_equations(problem: Problem) -> int:
    """The equations of the jaxpr of JAX's VJP, nested ones included; plain calls count as what they call."""
    flat = problem.flat(problem.f)

    def vjp(xs, rest, us):
        return jax.vjp(lambda *active: flat(active, rest), *xs)[1](us)

    return count_equations(jax.make_jaxpr(vjp)(problem.point, problem.others, problem.cotangents))


def count_equations(jaxpr: Any) -> int:
    """The equations of a jaxpr, closed or not."""
    inner = getattr(jaxpr, "jaxpr", jaxpr)
    return sum(
        (eqn.primitive.name not in _CALLS) + sum(map(count_equations, _nested(eqn.params)))
        for eqn in inner.eqns
    )


def _nested(params: dict[str, Any]) -> Iterator[Any]:
    for value in params.values():
        for item in value if isinstance(value, tuple | list) else (value,):
            if hasattr(getattr(item, "jaxpr", item), "eqns"):
                yield item
