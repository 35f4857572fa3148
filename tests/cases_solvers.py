"""Cases of LU factorisation, general eigenvalues, reflections and linear maps with inverses of their own."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from casekit import given, ints, real, rows
from cases_linalg import spread_apart, well_conditioned
from jax import lax

from pybridge.frontend.adapter import internals

ALL = "f32 f64 c64"

_LU = [
    *(
        case
        for shape in ((3, 3), (4, 2), (2, 4), (2, 3, 3))
        for case in rows(
            "lu",
            ALL if shape == (3, 3) else "f64 c128",
            lambda x: lax.linalg.lu(x)[0],
            spread_apart(shape[-2], shape[-1], *shape[:-2]),
            active=(0,),
            name="_" + "x".join(map(str, shape)),
        )
    ),
    *rows("lu", "f64", lambda x: lax.linalg.lu(x)[1:], real(-2, 2, (2, 4, 3)), name="_pivots"),
    *rows(
        "lu_pivots_to_permutation",
        "i32",
        lambda x: lax.linalg.lu_pivots_to_permutation(lax.linalg.lu(x)[1], 4),
        lambda rng, _: rng.standard_normal((2, 4, 3)),
    ),
    *rows(
        "lu_pivots_to_permutation",
        "i32",
        lambda pivots: lax.linalg.lu_pivots_to_permutation(pivots, 5),
        given([[0, 4, 2, 3], [4, 4, 4, 4]]),
        name="_given",
    ),
    *rows(
        "lu_pivots_to_permutation",
        "i32",
        lambda pivots: lax.linalg.lu_pivots_to_permutation(pivots, 2),
        given(np.zeros((3, 0))),
        name="_empty",
    ),
]

_EIG = [
    *rows(
        "eig",
        "f32 f64 c64",
        lambda x: lax.linalg.eig(
            x, compute_left_eigenvectors=False, compute_right_eigenvectors=False, enable_eigvec_derivs=True
        )[0],
        spread_apart(3, 3),
        active=(0,),
        exact=False,
        name="_values",
    ),
    *rows(
        "eig",
        "f64 c128",
        lambda x: lax.linalg.eig(x, enable_eigvec_derivs=True),
        spread_apart(3, 3, 2),
        active=(0,),
        exact=False,
        name="_vectors",
    ),
]


def _schur_function(x):
    """What does not depend on the vectors' phases."""
    t, z = lax.linalg.schur(x)
    return jnp.abs(t), jnp.abs(z), z @ t @ jnp.conj(z.T)


def _tridiagonal_function(x, lower=True):
    """A hermitian matrix, as the diagonal of a complex one is taken to be real."""
    return lax.linalg.tridiagonal(x + jnp.conj(jnp.swapaxes(x, -1, -2)), lower=lower)


def _rotated(x, c):
    """All products with the Q of x and its adjoint."""
    a, taus = internals.geqrf(x)
    d = jnp.swapaxes(c, -1, -2)
    return [
        lax.linalg.ormqr(a, taus, c if left else d, left=left, transpose=transpose)
        for left in (True, False)
        for transpose in (True, False)
    ]


_REFLECTIONS = [
    *rows("hessenberg", "f32 f64 c64", lax.linalg.hessenberg, real(-2, 2, (2, 4, 4))),
    *rows("tridiagonal", "f32 f64 c64", _tridiagonal_function, real(-2, 2, (2, 4, 4))),
    *rows(
        "tridiagonal",
        "f64 c128",
        lambda x: _tridiagonal_function(x, lower=False),
        real(-2, 2, (4, 4)),
        name="_upper",
    ),
    *rows("geqrf", "f32 f64 c64", internals.geqrf, real(-2, 2, (2, 4, 3))),
    *rows("geqp3", "f32 f64 c64", internals.geqp3, real(-2, 2, (2, 4, 3)), ints(0, 2, (2, 3), "i32")),
    *rows("ormqr", "f32 f64 c64", _rotated, real(-2, 2, (2, 4, 3)), real(-2, 2, (2, 4, 2))),
    *rows("schur", "f32 f64 c64", _schur_function, spread_apart(3, 3), exact=False),
    *rows(
        "householder_product",
        "f32 f64 c64",
        lax.linalg.householder_product,
        real(-1, 1, (2, 4, 3)),
        real(-1, 1, (2, 2)),
    ),
]

_TRIDIAGONAL = rows(
    "tridiagonal_solve",
    "f32 f64",
    lax.linalg.tridiagonal_solve,
    real(-1, 1, (2, 4)),
    real(3, 4, (2, 4)),
    real(-1, 1, (2, 4)),
    real(-2, 2, (2, 4, 3)),
    active=(0, 1, 2, 3),
)


def _by_iterations(a, b):
    """A solver of the user's own that also tells how far off it ended."""

    def solve(matvec, right):
        diagonal = jnp.diagonal(a)
        x = lax.fori_loop(0, 60, lambda _, x: x + (right - matvec(x)) / diagonal, right / diagonal)
        return x, jnp.max(jnp.abs(matvec(x) - right)) < 1

    x, close = lax.custom_linear_solve(
        lambda x: a @ x, b, solve=solve, transpose_solve=lambda vecmat, ct: solve(vecmat, ct), has_aux=True
    )
    return jnp.where(close, x, jnp.nan)


def dominant(rng, dtype):
    """A matrix for which the iteration above converges fast."""
    return (real(-0.2, 0.2, (3, 3))(rng, dtype) + 2 * np.eye(3)).astype(real(0, 1)(rng, dtype).dtype)


_SOLVE = [
    *rows(
        "custom_linear_solve",
        ALL,
        jnp.linalg.solve,
        well_conditioned(3, 3),
        real(-2, 2, (3, 2)),
        active=(0, 1),
        exact=False,
    ),
    *rows(
        "custom_linear_solve",
        "f64 c128",
        jnp.linalg.inv,
        well_conditioned(2, 3, 3),
        active=(0,),
        exact=False,
        name="_inv",
    ),
    *rows(
        "custom_linear_solve",
        "f64",
        jnp.linalg.det,
        real(-2, 2, (4, 4)),
        active=(0,),
        exact=False,
        name="_det",
    ),
    *rows(
        "custom_linear_solve",
        "f64",
        lambda x: jnp.linalg.slogdet(x)[1],
        real(-2, 2, (2, 3, 3)),
        active=(0,),
        exact=False,
        name="_slogdet",
    ),
    *rows(
        "custom_linear_solve",
        "f64",
        lambda a, b: jax.scipy.sparse.linalg.cg(lambda x: a @ (a.T @ x) + x, b, tol=1e-14)[0],
        real(-1, 1, (3, 3)),
        real(-2, 2, (3,)),
        active=(0, 1),
        exact=False,
        name="_cg",
    ),
    *rows(
        "custom_linear_solve",
        "f64",
        _by_iterations,
        dominant,
        real(-2, 2, (3,)),
        active=(0, 1),
        exact=False,
        name="_aux",
    ),
]


def _scaled(x, factor):
    """A linear map whose transpose is the user's, which closes over nothing."""
    return jax.custom_derivatives.linear_call(
        lambda known, v: v / known, lambda known, ct: ct / known, lax.stop_gradient(factor), x
    )


_CALL = [
    *rows(
        "linear_call",
        "f32 f64",
        _scaled,
        real(-2, 2, (3,)),
        real(1, 2, (3,)),
        active=(0,),
        exact=False,
        batched=False,
    ),
    # Of integers it is what it computes.
    *rows("div", "i32", _scaled, ints(-9, 9, (3,)), ints(1, 9, (3,)), name="_linear_call", batched=False),
]

_DEFINED = [
    *rows(
        "program",
        "f32 f64",
        lambda r, w: lax.linalg.cholesky_update(jnp.triu(r), w),
        well_conditioned(3, 3),
        real(-1, 1, (3,)),
        active=(0, 1),
        exact=False,
        reference=lambda r, w: jnp.linalg.cholesky(jnp.triu(r).T @ jnp.triu(r) + jnp.outer(w, w)).T,
        name="_cholesky_update",
    ),
    *rows(
        "program",
        "f64",
        lambda r, w: lax.linalg.cholesky_update(jnp.triu(r), w),
        well_conditioned(3, 3),
        given([0.0, 0.7, 0.0]),
        active=(0, 1),
        exact=False,
        reference=lambda r, w: jnp.linalg.cholesky(jnp.triu(r).T @ jnp.triu(r) + jnp.outer(w, w)).T,
        name="_cholesky_update_zeros",
    ),
    *rows(
        "program",
        "f64",
        lambda a, c: lax.linalg.symmetric_product(a, c, alpha=0.5, beta=-2.0),
        real(-1, 1, (2, 3, 4)),
        real(-1, 1, (2, 3, 3)),
        exact=False,
        name="_symmetric_product",
    ),
]

CASES = [*_DEFINED, *_LU, *_EIG, *_REFLECTIONS, *_TRIDIAGONAL, *_SOLVE, *_CALL]
