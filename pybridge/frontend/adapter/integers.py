"""The upper half of a product of integers, which JAX 0.10.1 does not have."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax


def _from_halves(x: Any, y: Any) -> Any:
    """The upper half of the product of two integers of one dtype, elementwise.

    Schoolbook multiplication of numbers with two digits of half the bits each (Knuth, The Art of Computer
    Programming 2, 4.3.1). As an unsigned number a negative one is larger by 2^bits, so that the other factor
    is subtracted from the upper half (Warren, Hacker's Delight, 8-3).
    """
    unsigned = np.dtype(f"u{x.dtype.name.removeprefix('u')}")
    half = np.array(4 * unsigned.itemsize, unsigned)
    mask = np.array((1 << int(half)) - 1, unsigned)
    a, b = (lax.convert_element_type(n, unsigned) for n in (x, y))
    (a0, a1), (b0, b1) = ((n & mask, n >> half) for n in (a, b))
    middle = a1 * b0 + (a0 * b0 >> half)  # no overflow: at most (2^half - 1)^2 + 2^half - 1
    carried = a0 * b1 + (middle & mask)
    high = a1 * b1 + (middle >> half) + (carried >> half)
    high = lax.convert_element_type(high, x.dtype)
    if x.dtype == unsigned:
        return high
    return high - jnp.where(x < 0, y, 0) - jnp.where(y < 0, x, 0)


mulhi = getattr(lax, "mulhi", _from_halves)
"""`jax.lax.mulhi`, which came with JAX 0.10.2."""
