"""Tridiagonal systems by Thomas' algorithm, which does not pivot.

Source: Golub and Van Loan, Matrix Computations, 4.3.6.
"""

from __future__ import annotations

from typing import Any

from jax import lax
from jax import numpy as jnp

from .batches import over_batches


@over_batches(1, 1, 1, 2)
def tridiagonal_solve(lower: Any, diagonal: Any, upper: Any, b: Any) -> Any:
    """x, (n, k), of A x = b, where A has these diagonals (n,): lower[0] and upper[-1] are not read."""

    def down(carry, row):
        ratio, y = carry
        below, d, above, b = row
        pivot = d - below * ratio
        new = above / pivot, (b - below * y) / pivot
        return new, new

    def up(x, row):
        ratio, y = row
        x = y - ratio * x
        return x, x

    lower, upper = lower.at[0].set(0), upper.at[-1].set(0)
    start = jnp.zeros((), b.dtype), jnp.zeros(b.shape[1:], b.dtype)
    _, rows = lax.scan(down, start, (lower, diagonal, upper, b))
    return lax.scan(up, start[1], rows, reverse=True)[1]
