"""The charge w that takes a particle between two others through the origin.

Derivatives are nested: the force is that of a potential, and the descent to w differentiates the whole
flight, a loop that ends where the particle comes to the axis. The letters of a function's name are the modes
of the descent and of the force, forward or reverse.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ..function import Bridge, Function, Operands, plain
from ..inputs import Input
from .descent import MODES, argmin

INTERVAL = 0.1  # of Euler's method
START, VELOCITY = (0.0, 8.0), (0.75, 0.0)


def potential(x: jax.Array, w: jax.Array) -> jax.Array:
    """Of two charges, at (10, 10 - w) and (10, 0)."""
    across, up = x
    return _inverse_distance(across - 10, up - (10 - w)) + _inverse_distance(across - 10, up)


def _inverse_distance(a: jax.Array, b: jax.Array) -> jax.Array:
    return 1 / jnp.sqrt(a**2 + b**2)


def _read(value: Input) -> Operands:
    return Operands((value.at("w").number(),))


def control(bridge: Bridge, outer: str, inner: str) -> Function:
    bridged = bridge(potential)

    def miss(w: jax.Array) -> jax.Array:
        """The square of the distance from the origin at which the particle crosses the first axis."""

        def advance(state: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array, jax.Array]:
            x, v, _ = state
            force = -MODES[inner](lambda at: bridged(at, w[0]))(x)
            return x + INTERVAL * v, v + INTERVAL * force, v

        start, velocity = jnp.array(START), jnp.array(VELOCITY)
        x, _, v = jax.lax.while_loop(lambda s: s[0][1] > 0, advance, (start, velocity, velocity))
        return (x[0] - x[1] / v[1] * v[0]) ** 2  # back along the velocity of the last step, to the axis

    bridged_miss = bridge(miss)

    def solve(w: jax.Array) -> jax.Array:
        return argmin(bridged_miss, MODES[outer](bridged_miss), w[None])[0]

    return Function(bridge(solve), _read, plain)


def functions(bridge: Bridge) -> dict[str, Function]:
    return {outer + inner: control(bridge, outer, inner) for outer in MODES for inner in MODES}
