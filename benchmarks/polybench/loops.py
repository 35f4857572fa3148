"""Linear algebra as loops over rows, columns or elements that change arrays in place."""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jax.lax import fori_loop

from .kernel import Array, Kernel, Kind, Program, uniform

_SCALES = (1.5, 1.2)  # Polybench's alpha and beta


def _definite(n: int) -> np.ndarray:
    (a,) = uniform((n, n))
    return a @ a.T + n * np.eye(n)


def _dominant(n: int) -> np.ndarray:
    (a,) = uniform((n, n))
    return a + n * np.eye(n)


def cholesky(n: int) -> Program:
    at = np.arange(n)

    def program(a):
        def column(j, a):
            before = jnp.where(at < j, a[j], 0.0)
            left = a[:, j] - a @ before
            pivot = jnp.sqrt(left[j])
            return a.at[:, j].set(jnp.where(at > j, left / pivot, jnp.where(at == j, pivot, a[:, j])))

        return jnp.tril(fori_loop(0, n, column, a))

    return program, (_definite(n),)


def _factorized(a):
    n = a.shape[0]
    at = np.arange(n)

    def eliminate(k, a):
        factors = jnp.where(at > k, a[:, k] / a[k, k], 0.0)
        a = a - factors[:, None] * jnp.where(at > k, a[k], 0.0)
        return a.at[:, k].set(jnp.where(at > k, factors, a[:, k]))

    return fori_loop(0, n - 1, eliminate, a)


def lu(n: int) -> Program:
    return _factorized, (_dominant(n),)


def ludcmp(n: int) -> Program:
    """LU factorization and the solution of a system with it."""
    at = np.arange(n)

    def program(a, b):
        factors = _factorized(a)

        def forward(i, y):
            return y.at[i].set(b[i] - jnp.where(at < i, factors[i], 0.0) @ y)

        y = fori_loop(0, n, forward, jnp.zeros(n))

        def backward(k, x):
            i = n - 1 - k
            return x.at[i].set((y[i] - jnp.where(at > i, factors[i], 0.0) @ x) / factors[i, i])

        return fori_loop(0, n, backward, jnp.zeros(n))

    return program, (_dominant(n), *uniform((n,)))


def trisolv(n: int) -> Program:
    at = np.arange(n)

    def program(factor, b):
        def row(i, x):
            return x.at[i].set((b[i] - jnp.where(at < i, factor[i], 0.0) @ x) / factor[i, i])

        return fori_loop(0, n, row, jnp.zeros(n))

    return program, (_dominant(n), *uniform((n,)))


def durbin(n: int) -> Program:
    """Levinson's recursion for a Toeplitz system (Yule-Walker equations)."""
    at = np.arange(n)

    def program(r):
        def order(k, state):
            y, alpha, beta = state
            beta = beta * (1 - alpha**2)
            reversed_y = jnp.where(at < k, y[(k - 1 - at) % n], 0.0)
            reversed_r = jnp.where(at < k, r[(k - 1 - at) % n], 0.0)
            alpha = -(r[k] + reversed_r @ y) / beta
            return (y + alpha * reversed_y).at[k].set(alpha), alpha, beta

        start = jnp.zeros(n).at[0].set(-r[0])
        return fori_loop(1, n, order, (start, -r[0], jnp.ones(())))[0]

    (r,) = uniform((n,))
    return program, (0.3 * r / (1 + np.arange(n)),)


def gramschmidt(m: int, n: int) -> Program:
    """Polybench's sizes the other way round: of more columns than rows the last have no direction left."""
    at = np.arange(n)

    def program(a):
        def column(k, state):
            a, q, r = state
            norm = jnp.sqrt(jnp.sum(a[:, k] ** 2))
            unit = a[:, k] / norm
            ahead = jnp.where(at > k, unit @ a, 0.0)
            return a - unit[:, None] * ahead, q.at[:, k].set(unit), r.at[k].set(ahead).at[k, k].set(norm)

        return fori_loop(0, n, column, (a, jnp.zeros((m, n)), jnp.zeros((n, n))))[1:]

    return program, uniform((m, n))


def trmm(m: int, n: int) -> Program:
    """B := alpha Aᵀ B with a unit lower triangle A, a row at a time."""
    at = np.arange(m)

    def program(b, a):
        def row(i, b):
            below = jnp.where(at > i, a[:, i], 0.0)
            return b.at[i].add(below @ b)

        return _SCALES[0] * fori_loop(0, m, row, b)

    return program, uniform((m, n), (m, m))


def symm(m: int, n: int) -> Program:
    """C := alpha A B + beta C, of A's lower triangle."""
    at = np.arange(m)
    alpha, beta = _SCALES

    def program(a, b, c):
        def row(i, c):
            left = jnp.where(at < i, a[i], 0.0)
            c = c + alpha * left[:, None] * b[i]
            return c.at[i].add(alpha * (a[i, i] * b[i] + left @ b))

        return fori_loop(0, m, row, beta * c)

    return program, uniform((m, m), (m, n), (m, n))


def _lower_triangle(c: Array, product: Callable[[Array], Array]) -> Array:
    """C := alpha P + beta C in its lower triangle, a row of P at a time."""
    n = c.shape[0]
    at = np.arange(n)
    alpha, beta = _SCALES

    def row(i, c):
        return c.at[i].set(jnp.where(at <= i, beta * c[i] + alpha * product(i), c[i]))

    return fori_loop(0, n, row, c)


def syrk(m: int, n: int) -> Program:
    """The lower triangle of C := alpha A Aᵀ + beta C, for A of n rows and m columns."""

    def program(a, c):
        return _lower_triangle(c, lambda i: a @ a[i])

    return program, uniform((n, m), (n, n))


def syr2k(m: int, n: int) -> Program:
    """The lower triangle of C := alpha (A Bᵀ + B Aᵀ) + beta C."""

    def program(a, b, c):
        return _lower_triangle(c, lambda i: a @ b[i] + b @ a[i])

    return program, uniform((n, m), (n, m), (n, n))


def doitgen(nq: int, nr: int, np_: int) -> Program:
    """Multiresolution analysis: a product with a matrix, page by page in place."""

    def program(a, c):
        return fori_loop(0, nr, lambda r, a: a.at[r].set(a[r] @ c), a)

    return program, uniform((nr, nq, np_), (np_, np_))


def go_fast(n: int) -> Program:
    """The trace of tanh, in a loop over the diagonal, added to the matrix."""

    def program(a):
        return a + fori_loop(0, n, lambda i, trace: trace + jnp.tanh(a[i, i]), 0.0)

    return program, uniform((n, n))


KERNELS = tuple(
    Kernel(make.__name__, Kind.INDEXED, make, small, medium, quick)
    for make, small, medium, quick in (
        (cholesky, (120,), (400,), (5,)),
        (lu, (120,), (400,), (5,)),
        (ludcmp, (120,), (400,), (5,)),
        (durbin, (120,), (400,), (5,)),
        (gramschmidt, (80, 60), (240, 200), (6, 4)),
        (trisolv, (120,), (400,), (5,)),
        (trmm, (60, 80), (200, 240), (4, 5)),
        (symm, (60, 80), (200, 240), (4, 5)),
        (syrk, (60, 80), (200, 240), (4, 5)),
        (syr2k, (60, 80), (200, 240), (4, 5)),
        (doitgen, (20, 25, 30), (40, 50, 60), (3, 4, 5)),
        (go_fast, (2000,), (6000,), (5,)),
    )
)
