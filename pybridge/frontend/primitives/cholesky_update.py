"""`cholesky_update`: the upper triangular factor R of RᵀR + z zᵀ by that of RᵀR, as rotations of rows.

JAX lowers it to these rotations too, but takes a rotation for constant where an entry of z is zero, so that
its derivative by that entry would be lost. Here that is so only where there is no derivative.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from .folding import written_out


def _update(eqn):
    update = _updated
    for _ in range(eqn.invars[0].aval.ndim - 2):
        update = jax.vmap(update)
    return lambda r, z: [update(r, z)]


def _updated(r, z):
    def rotate(z, row_and_place):
        row, k = row_and_place
        c, s = _rotation(row[k], z[k])
        return c * z + s * row, c * row - s * z

    return lax.scan(rotate, z, (r, jnp.arange(z.shape[0])))[1]


def _rotation(x, y):
    """(c, s) with s x + c y = 0 and c² + s² = 1: x/h and -y/h with h = √(x² + y²)."""
    idle = (y == 0) & (x <= 0)
    x, y = jnp.where(idle, 1, x), jnp.where(idle, 0, y)
    # c and s do not change with the scale, by which no square overflows.
    scale = lax.stop_gradient(jnp.maximum(jnp.abs(x), jnp.abs(y)))
    x, y = x / scale, y / scale
    h = 1 / jnp.sqrt(x**2 + y**2)
    return x * h, -y * h


lower_cholesky_update = written_out(_update)
