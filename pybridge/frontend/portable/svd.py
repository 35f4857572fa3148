"""Singular values and vectors by one-sided Jacobi rotations.

Source: Golub and Van Loan, Matrix Computations, 8.6.3; Drmač and Veselić, New fast and accurate Jacobi SVD
algorithm, SIAM J. Matrix Anal. Appl. 29 (2008), for the QR factorisation ahead and the bound on the cosines.
"""

from __future__ import annotations

from typing import Any

from jax import lax
from jax import numpy as jnp

from .batches import over_batches
from .jacobi import columns_rotated, padded, rotation, sweeps, tournament
from .qr import qr


@over_batches(2)
def svd(x: Any, *, full_matrices: bool, compute_uv: bool) -> Any:
    """s, (k,) in descending order, with u and vh if `compute_uv`; k = min(m, n).

    x: (m, n). u: (m, k), vh: (k, n); (m, m) and (n, n) if `full_matrices`.
    """
    m, n = x.shape
    if m < n:
        found = svd(jnp.conj(x).T, full_matrices=full_matrices, compute_uv=compute_uv)
        if not compute_uv:
            return found
        s, u, vh = found
        return s, jnp.conj(vh).T, jnp.conj(u).T
    scale = _scale(x)
    b, v = _orthogonalized(x / scale)
    s = jnp.sqrt(jnp.sum(jnp.abs(b) ** 2, axis=0))
    order = jnp.argsort(-s)
    s = jnp.where(jnp.all(jnp.isfinite(x)), s[order] * scale, jnp.nan)
    if not compute_uv:
        return [s]
    u, r = qr(b[:, order], full_matrices=full_matrices)
    return s, u * _phases(r, u.shape[1]), jnp.conj(v[:, order]).T


def _scale(x: Any) -> Any:
    """A power of two near the largest element, with which squares neither overflow nor vanish."""
    largest = jnp.max(jnp.abs(x), initial=0)
    usable = (largest > 0) & jnp.isfinite(largest)
    return jnp.where(usable, jnp.exp2(jnp.floor(jnp.log2(jnp.where(usable, largest, 1)))), 1)


def _phases(r: Any, count: int) -> Any:
    """Of the diagonal of R, by which Q differs from the directions of the columns; 1 for further columns."""
    d = r.diagonal()
    phases = jnp.where(d == 0, 1, d / jnp.where(d == 0, 1, jnp.abs(d))).astype(r.dtype)
    return jnp.pad(phases, (0, count - phases.shape[0]), constant_values=1)


def _orthogonalized(x: Any) -> tuple[Any, Any]:
    """x V, of orthogonal columns, and V."""
    m, n = x.shape
    if n == 0:
        return x, jnp.eye(0, dtype=x.dtype)
    wide, tall = padded(x), padded(jnp.eye(n, dtype=x.dtype))
    size = wide.shape[1]
    half, order = size // 2, tournament(size)
    cosine = jnp.finfo(x.dtype).eps * m**0.5

    def round_(_, carry):
        b, v, moved = carry
        p, q = b[:, :half], b[:, half:]
        p2, q2 = jnp.sum(jnp.abs(p) ** 2, axis=0), jnp.sum(jnp.abs(q) ** 2, axis=0)
        cross = jnp.sum(jnp.conj(p) * q, axis=0)
        threshold = cosine * jnp.sqrt(p2) * jnp.sqrt(q2)
        c, s = rotation(p2, q2, cross, threshold)
        b, v = columns_rotated(b, c, s)[:, order], columns_rotated(v, c, s)[:, order]
        return b, v, moved | jnp.any(jnp.abs(cross) > threshold)

    def once(state):
        b, v, moved = lax.fori_loop(0, size - 1, round_, (*state, jnp.bool_(False)))
        return (b, v), moved

    b, v = sweeps(once, (wide, tall))
    return b[:, :n], v[:, :n]
