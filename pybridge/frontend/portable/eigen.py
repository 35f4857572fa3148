"""Eigenvalues and eigenvectors of Hermitian matrices by Jacobi's rotations.

Source: Golub and Van Loan, Matrix Computations, 8.5.
"""

from __future__ import annotations

from typing import Any

from jax import lax
from jax import numpy as jnp

from .batches import over_batches
from .jacobi import columns_rotated, padded, rotation, sweeps, tournament


@over_batches(2)
def eigh(x: Any, *, lower: bool, sort_eigenvalues: bool) -> tuple[Any, Any]:
    """The eigenvectors, columns of (n, n), and the eigenvalues, (n,), in ascending order.

    x: (n, n), of which one triangle is read.
    """
    n = x.shape[0]
    if n == 0:
        return x, x.diagonal().real
    w, v = _diagonalized(padded(padded(_hermitian(x, lower)).T).T)
    w = jnp.where(jnp.all(jnp.isfinite(x)), w, jnp.nan)
    v = jnp.where(jnp.all(jnp.isfinite(x)), v, jnp.nan)
    w, v = w[:n], v[:n, :n]
    order = jnp.argsort(w)
    return (v[:, order], w[order]) if sort_eigenvalues else (v, w)


def _hermitian(x: Any, lower: bool) -> Any:
    strict = jnp.tril(x, -1) if lower else jnp.triu(x, 1)
    return strict + jnp.conj(strict).T + jnp.diag(x.diagonal().real).astype(x.dtype)


def _diagonalized(a: Any) -> tuple[Any, Any]:
    """The diagonal and the vectors, the padding's in the place where it was."""
    size = a.shape[0]
    half, order = size // 2, tournament(size)
    threshold = jnp.finfo(a.dtype).eps * jnp.linalg.norm(a)

    def round_(_, carry):
        a, v, moved = carry
        diagonal = a.diagonal().real
        cross = a[:half, half:].diagonal()
        c, s = rotation(diagonal[:half], diagonal[half:], cross, threshold)
        a = columns_rotated(jnp.conj(columns_rotated(a, c, s)).T, c, s)
        a, v = a[order][:, order], columns_rotated(v, c, s)[:, order]
        return a, v, moved | jnp.any(jnp.abs(cross) > threshold)

    def once(state):
        a, v, moved = lax.fori_loop(0, size - 1, round_, (*state, jnp.bool_(False)))
        return (a, v), moved

    a, v = sweeps(once, (a, jnp.eye(size, dtype=a.dtype)))
    return a.diagonal().real, v
