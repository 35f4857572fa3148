"""Exports with factorisations: in StableHLO alone, or by each platform's library; with symbolic sizes."""

from __future__ import annotations

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from casekit import computed
from exports import custom_calls, elsewhere
from jax import export as jax_export
from jax import lax

import pybridge as pb

pytestmark = pytest.mark.usefixtures("x64")

RNG = np.random.default_rng(11)
A = RNG.standard_normal((5, 5)) + 5 * np.eye(5)
X, Y = RNG.uniform(0, 1, 6), RNG.standard_normal(6)


def gaussian_process(scale, x, y):
    """The negative log marginal likelihood."""
    k = jnp.exp(-0.5 * (x[:, None] - x[None]) ** 2 / scale**2) + 0.1 * jnp.eye(x.shape[0])
    factor = jnp.linalg.cholesky(k)
    weights = jax.scipy.linalg.cho_solve((factor, True), y)
    return 0.5 * y @ weights + jnp.sum(jnp.log(jnp.diag(factor)))


def spectrum(a):
    """Smooth in a, and free of the signs of vectors."""
    w, v = jnp.linalg.eigh(a @ a.T)
    return jnp.sum(jnp.sqrt(w)) + jnp.sum(v[0] ** 2 * w)


FUNCTIONS = {
    "gaussian process": (gaussian_process, (0.7, X, Y)),
    "solve": (lambda a, b: jnp.sum(jnp.sin(jnp.linalg.solve(a, b))), (A, Y[:5])),
    "determinant": (lambda a: jnp.linalg.slogdet(a)[1] + jnp.linalg.det(a), (A,)),
    "batch of inverses": (lambda a: jnp.sum(jnp.sin(jnp.linalg.inv(a))), (np.stack([A, A.T]),)),
    "least squares": (lambda a, b: jnp.sum(jnp.linalg.lstsq(a, b)[0] ** 2), (A[:, :3], Y[:5])),
    "qr": (lambda a: jnp.sum(jnp.abs(jnp.linalg.qr(a)[1]) ** 3), (A[:, :3],)),
    "eigenvalues": (spectrum, (A,)),
    "nuclear norm": (lambda a: jnp.sum(jnp.linalg.svd(a, compute_uv=False)), (A[:3],)),
    "exponential": (lambda a: jnp.sum(jax.scipy.linalg.expm(a / 5)), (A,)),
    "tridiagonal": (
        lambda d, b: jnp.sum(lax.linalg.tridiagonal_solve(d / 9, 3 + d, d / 8, b[:, None]) ** 2),
        (X, Y),
    ),
}


@pytest.mark.parametrize("shape", [(4, 4), (2, 3, 3)])
def test_a_complex_cholesky_reads_what_lapack_reads(shape):
    """Neither the upper triangle nor the diagonal's imaginary parts, without JAX's symmetrization."""
    x, t = (RNG.standard_normal(shape) + 1j * RNG.standard_normal(shape) for _ in range(2))
    x += 6 * np.eye(shape[-1])

    def factor(x):
        return lax.linalg.cholesky(x, symmetrize_input=False)

    def both(f):
        return lambda x, t: (*jax.jvp(f, (x,), (t,)), *jax.vjp(f, x)[1](t))

    found = pb.export(both(pb.bridge(factor)))(x, t).call(x, t)
    expected = jax.jit(both(lambda x: factor(_hermitian(x))))(x, t)
    for y, z in zip(found, expected, strict=True):
        np.testing.assert_allclose(y, z, rtol=0, atol=1e-12)


def _hermitian(x):
    lower = jnp.tril(x, -1)
    return lower + jnp.conj(jnp.swapaxes(lower, -1, -2)) + jnp.eye(x.shape[-1]) * x.real


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_in_stablehlo_alone(name):
    f, args = FUNCTIONS[name]
    every = tuple(range(len(args)))
    exported = pb.export(jax.value_and_grad(pb.bridge(f), every))(*args)
    assert exported.platforms == ("cpu", "cuda", "tpu")
    assert not custom_calls(exported)
    results = computed([exported.call, jax.value_and_grad(f, every)], [args, args])
    for found, y in zip(*map(jax.tree.leaves, results), strict=True):
        np.testing.assert_allclose(found, y, rtol=1e-9, atol=1e-9 * np.abs(y).max())


def test_the_gaussian_process_of_any_size_runs_without_pybridge(tmp_path):
    n = jax.ShapeDtypeStruct(jax_export.symbolic_shape("n"), np.float64)
    exported = pb.export(gaussian_process)(0.7, n, n)
    (tmp_path / "gp").write_bytes(exported.serialize(vjp_order=1))
    code = """
        jax.config.update("jax_enable_x64", True)
        x, y = (np.float64(v) for v in json.loads(sys.argv[2]))
        value, gradient = jax.value_and_grad(exported.call, (0, 1, 2))(0.7, x, y)
        print(json.dumps([float(value), *(np.asarray(g).tolist() for g in gradient)]))
    """
    for size in (1, 6):
        found = elsewhere(tmp_path / "gp", code, json.dumps([X[:size].tolist(), Y[:size].tolist()]))
        value, gradient = jax.value_and_grad(gaussian_process, (0, 1, 2))(0.7, X[:size], Y[:size])
        for a, b in zip(found, (value, *gradient), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


SYMBOLIC = {
    "solve": (lambda a: jnp.sum(jnp.sin(jnp.linalg.solve(a, a[0] ** 2))), "n, n"),
    "determinant": (lambda a: jnp.linalg.slogdet(a)[1], "n, n"),
    "scan": (lambda x: lax.scan(lambda c, v: (0.9 * c + jnp.sin(v), c * v), 0.5, x)[1].sum(), "n"),
    "backwards": (lambda x: lax.scan(lambda c, v: (c * v, c), 1.0, x, reverse=True)[1].sum(), "n"),
    "sums": (lambda x: jnp.cumsum(x) @ x**2 + lax.cumsum(x, reverse=True)[0], "n"),
    "maxima": (lambda x: lax.cummax(x) @ x, "n"),
    # The size that a cotangent has is no size of what the derivative is computed from.
    "indices": (lambda x: x[jnp.array([0, 1, 0])] @ jnp.arange(3.0), "n"),
    "flat": (lambda x: jnp.sum(jnp.ravel(x) ** 3), "n, m"),
}


@pytest.mark.parametrize("name", SYMBOLIC)
def test_symbolic_sizes(name):
    f, shape = SYMBOLIC[name]
    spec = jax.ShapeDtypeStruct(jax_export.symbolic_shape(shape), np.float64)
    exported = pb.export(jax.value_and_grad(pb.bridge(f)))(spec)
    for size in (2, 5):
        x = A[:size, :size] if "," in shape else A[0, :size]
        found, expected = computed([exported.call, jax.value_and_grad(f)], [(x,), (x,)])
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def test_a_scan_of_symbolic_length_that_reads_no_array():
    def powers(x):
        return lax.scan(lambda c, _: (c * x.mean(), c), 1.0, x)[1].sum()

    spec = jax.ShapeDtypeStruct(jax_export.symbolic_shape("n"), np.float64)
    assert pb.export(powers)(spec).call(np.array([2.0, 2, 2])) == 1 + 2 + 4


def test_by_each_platforms_library():
    exported = pb.export(jax.grad(pb.bridge(gaussian_process)), linear_algebra="platform")(0.7, X, Y)
    calls = custom_calls(exported)
    assert {"lapack_dpotrf_ffi", "cusolver_potrf_ffi"} <= calls
    np.testing.assert_allclose(exported.call(0.7, X, Y), jax.grad(gaussian_process)(0.7, X, Y), rtol=1e-9)


def test_a_program_exports_its_factorisations():
    program = pb.trace(gaussian_process)(0.7, X, Y).vjp(optimize=True)
    exported = pb.export(program)()
    assert not custom_calls(exported)
    ones = np.float64(1)
    found, expected = exported.call(np.float64(0.7), X, Y, ones), jax.grad(gaussian_process)(0.7, X, Y)
    np.testing.assert_allclose(found[0], expected, rtol=1e-9)


def test_every_engine_exports_without_a_library():
    exported = pb.export(gaussian_process, engine="jax")(0.7, X, Y)
    assert not custom_calls(exported)
    np.testing.assert_allclose(exported.call(0.7, X, Y), gaussian_process(0.7, X, Y), rtol=1e-9)


def test_what_does_not_exist_is_refused():
    with pytest.raises(pb.UnknownOption, match="'portable', 'platform'"):
        pb.export(gaussian_process, linear_algebra="lapack")
