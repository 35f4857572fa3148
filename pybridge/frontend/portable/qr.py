"""QR by Householder's reflections, H = I - tau v vᴴ with v[k] = 1, as LAPACK stores them.

Source: Golub and Van Loan, Matrix Computations, 5.1 and 5.2; LAPACK's geqrf, larfg and ungqr for signs.
"""

from __future__ import annotations

from typing import Any

from jax import lax
from jax import numpy as jnp

from .batches import is_empty, over_batches


@over_batches(2)
def geqrf(x: Any) -> tuple[Any, Any]:
    """R in the upper triangle with the vectors below, (m, n), and the taus, (min(m, n),)."""
    m, n = x.shape
    rows, columns = jnp.arange(m), jnp.arange(n)

    def step(k, carry):
        x, taus = carry
        v, tau, beta = _reflection(x[:, k], rows, k)
        product = jnp.conj(v) @ x  # Hᴴ x, for the columns behind k
        x = x - jnp.where(columns > k, jnp.conj(tau) * product, 0)[None, :] * v[:, None]
        column = jnp.where(rows > k, v, jnp.where(rows == k, beta, x[:, k]))
        return x.at[:, k].set(column), taus.at[k].set(tau)

    count = min(m, n)
    start = x, jnp.zeros((count,), x.dtype)
    return start if is_empty(x) else lax.fori_loop(0, count, step, start)


def _reflection(x: Any, rows: Any, k: Any) -> tuple[Any, Any, Any]:
    """v, tau and beta, real, of H with Hᴴ x = beta e_k in the rows from k on."""
    alpha, tail = x[k], jnp.where(rows > k, x, 0)
    scale = jnp.max(jnp.abs(jnp.where(rows >= k, x, 0)))  # squares of large and small numbers overflow
    safe = jnp.where((scale > 0) & jnp.isfinite(scale), scale, 1)
    norm = safe * jnp.sqrt(jnp.sum(jnp.abs(jnp.where(rows >= k, x, 0) / safe) ** 2))
    trivial = jnp.all(tail == 0) & (alpha.imag == 0)
    beta = jnp.where(alpha.real > 0, -norm, norm)
    divisor = jnp.where(trivial, 1, alpha - beta)
    tau = jnp.where(trivial, 0, (beta - alpha) / jnp.where(trivial, 1, beta)).astype(x.dtype)
    v = jnp.where(rows == k, 1, tail / divisor).astype(x.dtype)
    return v, tau, jnp.where(trivial, alpha, beta).astype(x.dtype)


def _vector(x: Any, k: Any) -> Any:
    rows = jnp.arange(x.shape[0])
    return jnp.where(rows > k, x[:, k], jnp.where(rows == k, 1, 0)).astype(x.dtype)


@over_batches(2, 1)
def householder_product(x: Any, taus: Any) -> Any:
    """The first n columns of H₀ H₁ ..., for vectors (m, n) and taus (k,)."""
    m, n = x.shape

    def step(i, q):
        k = taus.shape[0] - 1 - i
        v = _vector(x, k)
        return q - taus[k] * v[:, None] * (jnp.conj(v) @ q)[None, :]

    start = jnp.eye(m, n, dtype=x.dtype)
    return start if is_empty(taus) else lax.fori_loop(0, taus.shape[0], step, start)


@over_batches(2, 1, 2)
def ormqr(x: Any, taus: Any, c: Any, *, left: bool, transpose: bool) -> Any:
    """Q c, Qᴴ c, c Q or c Qᴴ, where Q = H₀ H₁ ... of the vectors (m, k) and taus (k,)."""
    count = taus.shape[0]

    def step(i, c):
        k = i if left == transpose else count - 1 - i
        v, tau = _vector(x, k), jnp.conj(taus[k]) if transpose else taus[k]
        if left:
            return c - tau * v[:, None] * (jnp.conj(v) @ c)[None, :]
        return c - tau * (c @ v)[:, None] * jnp.conj(v)[None, :]

    return c if is_empty(x) else lax.fori_loop(0, count, step, c)


@over_batches(2)
def qr(x: Any, *, full_matrices: bool) -> tuple[Any, Any]:
    """Q, (m, k) or (m, m), and R, (k, n) or (m, n), of x (m, n); k = min(m, n)."""
    m, n = x.shape
    reflections, taus = geqrf(x)
    if not full_matrices or m == n:
        k = min(m, n)
        return householder_product(reflections[:, :k], taus), jnp.triu(reflections[:k])
    widened = jnp.pad(reflections[:, :m], ((0, 0), (0, max(m - n, 0))))
    return householder_product(widened, taus), jnp.triu(reflections)
