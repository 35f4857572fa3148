"""The saddle point of f(x, y) = |x|² - |y|²: the x that minimises the largest f over y, and that y.

Derivatives are nested: the descent to x differentiates a descent to y. The letters of a function's name are
the modes of the two, forward or reverse; the y for the final x is found with the first.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ..function import Bridge, Function, Operands, plain
from ..inputs import Input
from .descent import MODES, argmax, argmin


def f(x: jax.Array, y: jax.Array) -> jax.Array:
    return jnp.sum(x**2) - jnp.sum(y**2)


def _read(value: Input) -> Operands:
    return Operands((value.at("start").floats(2),))


def saddle_point(bridge: Bridge, outer: str, inner: str) -> Function:
    bridged = bridge(f)

    def highest(x: jax.Array, mode: str, start: jax.Array) -> jax.Array:
        """The y that maximises f(x, y)."""

        def of_y(y: jax.Array) -> jax.Array:
            return bridged(x, y)

        return argmax(of_y, MODES[mode](of_y), start)

    def ridge(x: jax.Array, start: jax.Array) -> jax.Array:
        return bridged(x, highest(x, inner, start))

    bridged_ridge = bridge(ridge)

    def solve(start: jax.Array) -> jax.Array:
        def of_x(x: jax.Array) -> jax.Array:
            return bridged_ridge(x, start)

        x = argmin(of_x, MODES[outer](of_x), start)
        return jnp.concatenate([x, highest(x, outer, start)])

    return Function(bridge(solve), _read, plain)


def functions(bridge: Bridge) -> dict[str, Function]:
    return {outer + inner: saddle_point(bridge, outer, inner) for outer in MODES for inner in MODES}
