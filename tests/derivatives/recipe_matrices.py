"""Operations on matrices for random functions; see recipe_ops.

Factorisations enter by what does not depend on signs and phases.
"""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jax import lax
from recipe_shapes import conform


def _matrices(draw, shape):
    """Not many, and not empty ones."""
    return () if len(shape) > 1 and 0 not in shape else None


def _spread(x):
    """Square matrices out of the leading ones, whose eigenvalues and singular values are far apart."""
    n = min(x.shape[-2:])
    return 0.3 * jnp.tanh(x[..., :n, :n]) + np.diag(1.5 * np.arange(1, n + 1)).astype(x.dtype)


def _symmetric(x):
    a = _spread(x)
    return a + jnp.swapaxes(a, -1, -2)


def _eigh(x):
    """Eigenvalues, and a function of the matrix, which do not depend on the vectors' signs."""
    v, w = lax.linalg.eigh(_symmetric(x))
    return w, (v * jnp.sin(w)[..., None, :]) @ jnp.swapaxes(v, -1, -2)


def _svd(x):
    u, s, vh = lax.linalg.svd(_spread(x), full_matrices=False)
    return s, (u * jnp.tanh(s)[..., None, :]) @ vh


def _solve(x, y):
    a = _spread(x)
    return jnp.linalg.solve(a, conform(y, a.shape))


def _triangular(x, y):
    a = _spread(x)
    return lax.linalg.triangular_solve(a, conform(y, a.shape), left_side=True, lower=True)


def _tridiagonal(x, y):
    right = conform(y, x.shape)
    row = jnp.tanh(x[..., 0])
    return lax.linalg.tridiagonal_solve(row, 3 + row, jnp.sin(row), right)


def _eig(x):
    """Sums over eigenvalues, which come in any order, and a function of the matrix."""
    w, v = lax.linalg.eig(_spread(x), compute_left_eigenvectors=False, enable_eigvec_derivs=True)
    return jnp.real(jnp.sum(jnp.sin(w), -1)), jnp.real((v * jnp.sin(w)[..., None, :]) @ jnp.linalg.inv(v))


def _schur(x):
    """What does not depend on the vectors' signs; JAX has no derivative of it."""
    t, z = lax.linalg.schur(lax.stop_gradient(_symmetric(x)))
    return jnp.sum(jnp.abs(t), (-1, -2)) + jnp.sum(x) * 0.1, z @ t @ jnp.swapaxes(z, -1, -2)


def _hessenberg(x):
    """A product of reflections is orthogonal; JAX has no derivative of it."""
    a, taus = lax.linalg.hessenberg(lax.stop_gradient(_spread(x)))
    return (
        jnp.tanh(x[..., :1, 0])
        * jnp.sum(jnp.abs(lax.linalg.householder_product(a, taus)), (-1, -2))[..., None]
    )


def _pivoted(x):
    """Columns in the order of their pivots; JAX's derivative of them fails for batches."""
    q, r, order = lax.linalg.qr(lax.stop_gradient(_spread(x)[..., ::-1]), pivoting=True, full_matrices=False)
    return (q @ r) * jnp.tanh(x[..., :1, :1]), jnp.sin(order.astype(x.dtype)) * jnp.sum(x)


def _full(x):
    """Of tall matrices, whose Q is more than A determines."""
    n = min(x.shape[-2:])
    return lax.linalg.qr(_spread(x)[..., : max(n - 1, 1)], full_matrices=True)


def _rotated(x):
    """All by the reflections of a constant matrix; JAX has no derivative of them."""
    h, taus = jnp.linalg.qr(lax.stop_gradient(_spread(x)), mode="raw")
    c = lax.stop_gradient(jnp.sin(x[..., : h.shape[-1], :]))
    return lax.linalg.ormqr(jnp.swapaxes(h, -1, -2), taus, c, transpose=True) * jnp.tanh(x[..., :1, :1])


def _reduced(x):
    """To tridiagonal form, of a constant matrix; JAX has no derivative of it."""
    _, d, e, _ = lax.linalg.tridiagonal(lax.stop_gradient(_symmetric(x)))
    return d * jnp.tanh(x[..., :1, 0]), jnp.abs(e) * jnp.sum(x)


def _permuted(x):
    """Rows in the order of the pivots."""
    _, pivots, order = lax.linalg.lu(_spread(lax.stop_gradient(x))[..., ::-1])
    again = lax.linalg.lu_pivots_to_permutation(pivots, order.shape[-1])
    n = order.shape[-1]
    return jnp.take_along_axis(jnp.sin(x[..., :n, :n]), again[..., None], axis=-2)


def _updated(x):
    """The factor of `a + w wᵀ` by that of `a`, of the first matrix; JAX has no derivative of it."""
    a = lax.stop_gradient(x if x.ndim == 2 else x[0])
    factor = jnp.swapaxes(lax.linalg.cholesky(_symmetric(a)), -1, -2)
    w = 0.3 * jnp.tanh(a[0, : factor.shape[0]])
    return jnp.sum(x) * lax.linalg.cholesky_update(factor, w)


def _symmetric_product(x):
    """JAX has no derivative of it."""
    a = jnp.tanh(lax.stop_gradient(x))
    c = jnp.zeros((*x.shape[:-1], x.shape[-2]), x.dtype)
    found = lax.linalg.symmetric_product(a, c, alpha=0.5, beta=0.0, symmetrize_output=True)
    return jnp.sum(x) * found


MATRICES: dict[str, tuple[Callable, Callable]] = {
    "cholesky": (_matrices, lambda x: lax.linalg.cholesky(_symmetric(x))),
    "cholesky_update": (_matrices, _updated),
    "eigh": (_matrices, _eigh),
    "eig": (_matrices, _eig),
    "svd": (_matrices, _svd),
    "schur": (_matrices, _schur),
    "hessenberg": (_matrices, _hessenberg),
    "permuted": (_matrices, _permuted),
    "symmetric_product": (_matrices, _symmetric_product),
    "qr": (_matrices, lambda x: lax.linalg.qr(_spread(x))[1]),
    "qr_pivoted": (_matrices, _pivoted),
    "qr_full": (_matrices, _full),
    "ormqr": (_matrices, _rotated),
    "tridiagonal": (_matrices, _reduced),
    "lu": (_matrices, lambda x: lax.linalg.lu(_spread(x))[0]),
    "det": (_matrices, lambda x: jnp.linalg.det(_spread(x)) / 5),
}

MATRICES_BINARY: dict[str, tuple[Callable, Callable]] = {
    "solve": (_matrices, _solve),
    "triangular_solve": (_matrices, _triangular),
    "tridiagonal_solve": (_matrices, _tridiagonal),
}
