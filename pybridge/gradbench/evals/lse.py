"""The logarithm of a sum of exponentials, and its gradient."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ..function import Bridge, Function, Operands, plain
from ..inputs import Input


def logsumexp(x: jax.Array) -> jax.Array:
    """Along the last axis; the largest exponent is taken out, so that no exponential overflows."""
    largest = jnp.max(x, axis=-1)
    return largest + jnp.log(jnp.sum(jnp.exp(x - largest[..., None]), axis=-1))


def _read(value: Input) -> Operands:
    return Operands((value.at("x").floats(None),))


def functions(bridge: Bridge) -> dict[str, Function]:
    bridged = bridge(logsumexp)
    return {
        "primal": Function(bridged, _read, plain),
        "gradient": Function(jax.grad(bridged), _read, plain),
    }
