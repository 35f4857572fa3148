"""Half the squared distance of a polynomial from the sign function, at n points of [-1, 1]."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from ..function import Bridge, Function, Operands, plain
from ..inputs import Input


def distance(x: jax.Array, t: jax.Array) -> jax.Array:
    """Of the polynomial with the coefficients x from the sign of t, at the points t."""
    polynomial, _ = jax.lax.scan(lambda y, a: (y * t + a, None), jnp.zeros_like(t), x, reverse=True)  # Horner
    return 0.5 * jnp.sum((jnp.sign(t) - polynomial) ** 2)


def _read(value: Input) -> Operands:
    n = value.at("n").integer(at_least=2)
    return Operands((value.at("x").floats(None), -1 + np.arange(n) * 2 / (n - 1)))


def functions(bridge: Bridge) -> dict[str, Function]:
    bridged = bridge(distance)
    return {
        "primal": Function(bridged, _read, plain),
        "gradient": Function(jax.grad(bridged), _read, plain),
    }
