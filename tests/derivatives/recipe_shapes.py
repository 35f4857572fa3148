"""What all operations of random functions share: shapes that fit and numbers that stay small."""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax

Shape = tuple[int, ...]


def positive(x):
    """Between 0.5 and 1.5."""
    return 0.5 + lax.logistic(x)


def conform(x, shape: Shape):
    """`x` brought to a shape: broadcast where that is possible, else by its sum."""
    if x.shape == shape:
        return x
    padded = (1,) * (len(shape) - x.ndim) + x.shape
    if len(padded) == len(shape) and all(n in (1, m) for n, m in zip(padded, shape, strict=True)):
        return jnp.broadcast_to(x, shape)
    return jnp.broadcast_to(jnp.tanh(jnp.sum(x)), shape)
