"""y₀' = x₀ and yᵢ' = xᵢ yᵢ₋₁ from 0 over two units of time, by s steps of the classical Runge-Kutta method.

The description in GradBench has a sum over x instead of xᵢ; its reference, and cmpad, from where the problem
is, have this. The derivative is that of the last element of y.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ..function import Bridge, Function, Operands, plain
from ..inputs import Input

END = 2.0


def solve(x: jax.Array, *, s: int) -> jax.Array:
    h = END / s

    def slope(y: jax.Array) -> jax.Array:
        return x * jnp.concatenate([jnp.ones(1), y[:-1]])

    def step(y: jax.Array, _: None) -> tuple[jax.Array, None]:
        k1 = slope(y)
        k2 = slope(y + 0.5 * h * k1)
        k3 = slope(y + 0.5 * h * k2)
        k4 = slope(y + h * k3)
        return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4), None

    return jax.lax.scan(step, jnp.zeros_like(x), length=s)[0]


def _read(value: Input) -> Operands:
    return Operands((value.at("x").floats(None),), {"s": value.at("s").integer(at_least=1)})


def functions(bridge: Bridge) -> dict[str, Function]:
    bridged = bridge(solve, static_argnames="s")

    def last(x: jax.Array, *, s: int) -> jax.Array:
        return bridged(x, s=s)[-1]

    return {
        "primal": Function(bridged, _read, plain),
        "gradient": Function(jax.grad(last), _read, plain),
    }
