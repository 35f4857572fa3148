"""Linear algebra in StableHLO alone, against LAPACK's results and what defines a factorisation."""

from __future__ import annotations

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from casekit import computed
from covering import covering
from jax import lax

from pybridge.frontend import portable

DTYPES = ["float32", "complex128"]
# Of one block of LU, of several, odd sizes, which Jacobi's rotations pad, tall and wide ones.
SHAPES = [(1, 1), (4, 4), (5, 3), (3, 6), (40, 37)]
SQUARE = [(1, 1), (2, 2), (5, 5), (30, 30)]
VARIANTS = list(itertools.product([False, True], DTYPES))

pytestmark = pytest.mark.usefixtures("x64")


def matrix(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    rng = np.random.default_rng([*shape, len(dtype)])
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if dtype.startswith("c") else x).astype(dtype)


def adjoint(x):
    return x.conj().swapaxes(-1, -2)


def assert_close(found, expected, size: int, scale=1.0) -> None:
    """Within what rounding makes of some `size` operations on numbers of this scale."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.dtype == expected.dtype and found.shape == expected.shape
    bound = 20 * size * np.finfo(found.dtype).eps * scale
    assert np.max(np.abs(found - expected), initial=0) <= bound


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_lu(shape, dtype):
    x = matrix(shape, dtype)
    m = shape[0]
    found, pivots, permutation = jax.jit(portable.lu)(x)
    _, expected_pivots, expected_permutation = lax.linalg.lu(x)
    if dtype == "complex128" or max(shape) < 10:  # others round to other pivots
        np.testing.assert_array_equal(pivots, expected_pivots)
        np.testing.assert_array_equal(permutation, expected_permutation)
    assert (pivots.dtype, permutation.dtype) == (expected_pivots.dtype, expected_permutation.dtype)
    k = min(shape)
    factors = np.asarray(found)
    lower, upper = np.tril(factors[:, :k], -1) + np.eye(m, k, dtype=dtype), np.triu(factors[:k])
    assert np.all(np.abs(np.tril(factors[:, :k], -1)) <= (1.5 if dtype.startswith("c") else 1))
    assert_close(lower @ upper, x[np.asarray(permutation)], max(shape), np.abs(upper).max())
    swapped = portable.lu_pivots_to_permutation(pivots, size=m)
    np.testing.assert_array_equal(swapped, permutation)


@pytest.mark.parametrize("shape, variant", covering(SHAPES, VARIANTS))
def test_qr(shape, variant):
    full, dtype = variant
    x, c = matrix(shape, dtype), matrix((shape[0], 2), dtype)

    def products(x, c):
        reflections, taus = portable.geqrf(x)
        q = reflections[:, : len(taus)], taus
        return [
            (
                lax.linalg.ormqr(*q, c, transpose=transpose),
                portable.ormqr(*q, c, left=True, transpose=transpose),
                portable.ormqr(*q, adjoint(c), left=False, transpose=not transpose),
            )
            for transpose in (False, True)
        ]

    qr = [functools.partial(f, full_matrices=full) for f in (portable.qr, lax.linalg.qr)]
    *factors, products_with_q = computed([*qr, products], [(x,), (x,), (x, c)])
    for found, expected in zip(*factors, strict=True):
        assert_close(found, expected, max(shape), np.linalg.norm(x))
    for by_lapack, left, right in products_with_q:
        assert_close(left, by_lapack, max(shape), np.linalg.norm(c))
        assert_close(adjoint(right), by_lapack, max(shape), np.linalg.norm(c))


@pytest.mark.parametrize("shape, variant", covering(SHAPES, VARIANTS))
def test_svd(shape, variant):
    full, dtype = variant
    x = matrix(shape, dtype)
    k, scale = min(shape), np.linalg.norm(x)
    whole, values = (
        functools.partial(portable.svd, full_matrices=full, compute_uv=uv) for uv in (True, False)
    )
    (s, u, vh), (alone,) = computed([whole, values], [(x,), (x,)])
    u, vh = np.asarray(u), np.asarray(vh)
    assert_close(s, np.linalg.svd(x, compute_uv=False), max(shape), scale)
    assert_close((u[:, :k] * s) @ vh[:k], x, max(shape), scale)
    assert_close(adjoint(u) @ u, np.eye(shape[0] if full else k, dtype=dtype), max(shape))
    assert_close(vh @ adjoint(vh), np.eye(shape[1] if full else k, dtype=dtype), max(shape))
    assert_close(alone, s, max(shape), scale)


@pytest.mark.parametrize("shape, variant", covering(SQUARE, VARIANTS))
def test_eigh(shape, variant):
    lower, dtype = variant
    x = matrix(shape, dtype)  # of which one triangle is read
    triangle = np.tril(x, -1) if lower else np.triu(x, 1)
    hermitian = triangle + adjoint(triangle) + np.diag(np.diag(x).real).astype(dtype)
    v, w = jax.jit(functools.partial(portable.eigh, lower=lower, sort_eigenvalues=True))(x)
    scale = np.linalg.norm(hermitian)
    assert_close(w, np.linalg.eigvalsh(hermitian), len(x), scale)
    assert_close((v * w) @ adjoint(v), hermitian, len(x), scale)
    assert_close(adjoint(v) @ v, np.eye(len(x), dtype=dtype), len(x))


@pytest.mark.parametrize("dtype", DTYPES)
def test_cholesky_and_triangular_systems(dtype):
    x = matrix((6, 6), dtype)
    positive = x @ adjoint(x) + np.eye(6, dtype=dtype)
    upper_is_not_read = np.tril(positive) + 7 * np.triu(matrix((6, 6), dtype), 1)
    assert_close(portable.cholesky(upper_is_not_read), np.linalg.cholesky(positive), 6, 10)
    assert np.isnan(np.asarray(portable.cholesky(-positive))[0, 0])
    for left in (False, True):
        b = matrix((6, 3) if left else (3, 6), dtype)
        for lower in (False, True):
            for transpose, conjugate in ((False, False), (True, False), (True, True), (False, True)):
                options = {"left_side": left, "lower": lower, "unit_diagonal": lower}
                options |= {"transpose_a": transpose, "conjugate_a": conjugate}
                a, of_lapack = positive, options
                if conjugate and not transpose:
                    a, of_lapack = np.conj(positive), options | {"conjugate_a": False}
                expected = lax.linalg.triangular_solve(a, b, **of_lapack)
                found = portable.triangular_solve(positive, b, **options)
                assert_close(found, expected, 6, max(1, np.abs(expected).max()))


@pytest.mark.parametrize("dtype", DTYPES)
def test_tridiagonal_systems(dtype):
    lower, upper = matrix((2, 7), dtype)
    diagonal, b = 4 + matrix((1, 7), dtype)[0], matrix((7, 2), dtype)
    x = portable.tridiagonal_solve(lower, diagonal, upper, b)
    a = np.diag(diagonal) + np.diag(lower[1:], -1) + np.diag(upper[:-1], 1)
    assert_close(x, np.linalg.solve(a, b), 7, 10)


def test_batches():
    x = matrix((2, 2, 4, 3), "float64")
    for f in (
        portable.lu,
        portable.geqrf,
        functools.partial(portable.qr, full_matrices=True),
        functools.partial(portable.svd, full_matrices=False, compute_uv=True),
    ):
        whole, *parts = computed([f] * 5, [(x,), *((x[at],) for at in np.ndindex(2, 2))])
        for at, part in zip(np.ndindex(2, 2), parts, strict=True):
            for y, each in zip(whole, part, strict=True):
                np.testing.assert_allclose(y[at], each, rtol=1e-12, atol=1e-12)
    lower = np.tril(x[..., :3, :]) + 3 * np.eye(3)
    b = matrix((3, 2), "float64")
    options = {"left_side": True, "lower": True, "transpose_a": False, "conjugate_a": False}
    solve = functools.partial(portable.triangular_solve, **options, unit_diagonal=False)
    one_side = jax.vmap(jax.vmap(solve, (0, None)), (0, None))(lower, b)
    np.testing.assert_allclose(lower @ np.asarray(one_side), np.broadcast_to(b, (2, 2, 3, 2)), atol=1e-12)


SPECIAL = {
    "zeros": np.zeros((4, 3)),
    "rank one": np.outer([1.0, 2, 3], [1, 2, 3]),
    "equal": np.ones((4, 4)),
    "diagonal": np.diag([1.0, 0, -2]),
    "tiny": np.eye(3) * 1e-200,
    "huge": np.eye(3) * 1e200,
    "graded": np.diag([1e-150, 1.0, 1e150]) @ (np.eye(3) + 0.1),
    "no rows": np.zeros((0, 3)),
    "no columns": np.zeros((3, 0)),
}


@pytest.mark.parametrize("name", SPECIAL)
def test_special_matrices(name):
    x = SPECIAL[name]
    s, u, vh = portable.svd(x, full_matrices=True, compute_uv=True)
    np.testing.assert_allclose(s, np.linalg.svd(x, compute_uv=False), atol=1e-14 * np.max(x, initial=0))
    np.testing.assert_allclose(u.T @ u, np.eye(len(x)), atol=1e-14)
    np.testing.assert_allclose(vh @ vh.T, np.eye(x.shape[1]), atol=1e-14)
    q, r = portable.qr(x, full_matrices=False)
    np.testing.assert_allclose(q @ r, x, atol=1e-14 * np.max(np.abs(x), initial=0))
    if x.shape[0] == x.shape[1]:
        h = x + x.T
        _, w = portable.eigh(h, lower=True, sort_eigenvalues=True)
        np.testing.assert_allclose(w, np.linalg.eigvalsh(h), atol=1e-14 * np.max(np.abs(h)))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_gives_nan_and_ends(bad):
    x = np.eye(4)
    x[2, 1] = x[1, 2] = bad
    assert np.isnan(portable.svd(x, full_matrices=False, compute_uv=False)[0]).all()
    assert np.isnan(portable.eigh(x, lower=True, sort_eigenvalues=True)[1]).all()
    assert not np.isfinite(portable.lu(x)[0]).all()


def test_singular_matrices_have_a_factorisation():
    x = np.array([[0.0, 1, 2], [0, 0, 3], [0, 0, 0]])
    np.testing.assert_array_equal(portable.lu(x)[0], lax.linalg.lu(jnp.asarray(x))[0])
