"""LU with partial pivoting.

Source: Golub and Van Loan, Matrix Computations, 3.4.4 (outer products) within 3.2.11 (blocks).
"""

from __future__ import annotations

from typing import Any

from jax import lax
from jax import numpy as jnp

from ..dimensions import is_symbolic
from .batches import is_empty, over_batches
from .operations import triangular_solve

_BLOCK = 32
"""The columns that are eliminated together; the others are updated by products of matrices."""


@over_batches(2)
def lu(x: Any) -> tuple[Any, Any, Any]:
    """L and U in one matrix, the row each step swaps its own with, and the permutation of the rows.

    x: (m, n). L and U: (m, n). pivots: (min(m, n),), of int32. permutation: (m,), of int32.
    """
    m, n = x.shape
    count = min(m, n) if not is_symbolic(m) and not is_symbolic(n) else None
    if is_empty(x):
        return x, jnp.zeros((0,), jnp.int32), jnp.arange(m, dtype=jnp.int32)
    if count is None or count <= _BLOCK:
        return _eliminated(x)
    pivots = []
    for k in range(0, count, _BLOCK):
        end = min(k + _BLOCK, count)
        panel, swaps, order = _eliminated(x[k:, k:end])
        # Not by `at[k:].set`: XLA of JAX 0.12 updates in place what the gather still reads.
        x = jnp.concatenate([x[:k], x[k:][order]]).at[k:, k:end].set(panel)
        pivots.append(swaps + k)
        if end < n:
            right = _solved(panel[: end - k], x[k:end, end:])
            x = x.at[k:end, end:].set(right)
            x = x.at[end:, end:].add(-_product(panel[end - k :], right))
    swapped = jnp.concatenate(pivots)
    return x, swapped, lu_pivots_to_permutation(swapped, size=m)


def _solved(lower: Any, b: Any) -> Any:
    flags = {"transpose_a": False, "conjugate_a": False}
    return triangular_solve(lower, b, left_side=True, lower=True, unit_diagonal=True, **flags)


def _product(x: Any, y: Any) -> Any:
    return jnp.matmul(x, y, precision=lax.Precision.HIGHEST)


def _eliminated(x: Any) -> tuple[Any, Any, Any]:
    """`lu` by one column after the other."""
    m, n = x.shape  # symbolic ones are the same
    rows, columns = jnp.arange(m, dtype=jnp.int32), jnp.arange(n, dtype=jnp.int32)
    count = min(m, n) if not is_symbolic(m) and not is_symbolic(n) else m

    def step(k, carry):
        x, pivots, order = carry
        found = jnp.argmax(jnp.where(rows >= k, _magnitude(x[:, k]), -1)).astype(jnp.int32)
        pivots = pivots.at[k].set(found)
        swap = _swap(rows, k, found)
        x, order = x[swap], order[swap]
        pivot = x[k, k]
        below = (rows > k) & (pivot != 0)
        column = jnp.where(below, x[:, k] / jnp.where(pivot == 0, 1, pivot), x[:, k])
        x = x.at[:, k].set(column)
        row = jnp.where(columns > k, x[k], 0)
        return x - jnp.where(rows > k, column, 0)[:, None] * row[None, :], pivots, order

    return lax.fori_loop(0, count, step, (x, jnp.zeros((count,), jnp.int32), rows))


def _magnitude(column: Any) -> Any:
    """By which LAPACK too chooses the pivot; NaN is taken, so that results show it."""
    size = abs(column.real) + abs(column.imag) if jnp.iscomplexobj(column) else abs(column)
    return jnp.where(jnp.isnan(size), jnp.inf, size)


def _swap(rows: Any, i: Any, j: Any) -> Any:
    return jnp.where(rows == i, j, jnp.where(rows == j, i, rows))


@over_batches(1)
def lu_pivots_to_permutation(pivots: Any, *, size: int) -> Any:
    """The permutation of `size` rows that the swaps of pivots (k,) make, of their dtype."""
    rows = jnp.arange(size, dtype=pivots.dtype)

    def step(k, order):
        i, j = order[k], order[pivots[k]]
        return order.at[k].set(j).at[pivots[k]].set(i)

    return rows if is_empty(pivots) else lax.fori_loop(0, pivots.shape[0], step, rows)
