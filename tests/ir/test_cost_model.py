"""What `execute="auto"` leaves to XLA, by the estimates of the cost model."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from jax import lax

import pybridge as pb
from pybridge.ir.cost_model import CONSTANT, ONE_LOOP, ROUTINES, reason_for_xla


def of(*shape, dtype="float32"):
    return jax.ShapeDtypeStruct(shape, dtype)


def spectrum(x):
    return jnp.abs(jnp.fft.fft(x))


def spectra(x):
    return lax.scan(lambda total, row: (total + spectrum(row), None), jnp.zeros_like(x[0]), x)[0]


def convolved(x, w):
    return lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def until_small(x):
    return lax.while_loop(lambda x: x[0, 0].real > 1, lambda x: spectrum(x) / 2, x)


@pytest.mark.parametrize(
    ("f", "args", "reason"),
    [
        (lambda x, y: x * y[:, None] - 2, (of(9, 8), of(9)), ONE_LOOP),
        (lambda x, y: x * y[:, None] - 2, (of(900, 80), of(900)), None),  # large
        (lambda x, y: (x + y, x - y), (of(9), of(9)), None),  # two loops
        (lambda x: jnp.sum(x * x), (of(9),), None),
        (lambda x: jnp.sin(x) * x, (of(9),), None),
        (spectrum, (of(64, 1000),), ROUTINES),
        (spectrum, (of(256),), None),  # shorter than XLA's call
        (spectra, (of(10, 64, 1000),), ROUTINES),
        (until_small, (of(64, 1000),), None),
        (lambda x: jnp.cumsum(jnp.sin(spectrum(x)), 1), (of(64, 1000),), None),  # kernels win by more
        (jnp.matmul, (of(1000, 10), of(10, 1000)), ROUTINES),
        (jnp.matmul, (of(100, 10), of(10, 100)), None),
        (jnp.matmul, (of(8, 1000), of(1000, 1000)), None),
        (jnp.matmul, (of(1, 2000), of(2000, 2000)), None),
        (jnp.matmul, (of(512, 512), of(512, 512)), None),
        (jnp.matmul, (of(500, 8, 100), of(500, 100, 100)), None),
        (lambda x: jnp.linalg.eigh(x)[0], (of(100, 100),), ROUTINES),
        (lambda x: jnp.linalg.eigh(x)[0], (of(3, 3),), None),
        (jnp.matmul, (of(256, 256, dtype="float16"),) * 2, ROUTINES),
        (jnp.matmul, (of(256, 256, dtype="bfloat16"),) * 2, ROUTINES),
        (jax.nn.softmax, (of(100, 1000, dtype="float16"),), ROUTINES),
        (jax.nn.softmax, (of(100, 1000, dtype="bfloat16"),), None),
        (lambda x: x * x + x, (of(100_000, dtype="float16"),), ROUTINES),
        (lambda x: x * x + x, (of(4000, dtype="float16"),), ROUTINES),
        (lambda x: jnp.sum(x * x + x), (of(100, dtype="float16"),), None),  # shorter than XLA's call
        (jax.vmap(jax.grad(jax.lax.digamma)), (of(1000),), ROUTINES),
        (jax.lax.digamma, (of(1000),), None),
        (jax.lax.digamma, (of(5000),), ROUTINES),
        (jax.lax.bessel_i0e, (of(10_000),), ROUTINES),
        (jax.lax.betainc, (of(1000),) * 3, ROUTINES),
        (lambda x: (x[::-1], x[:, ::-1]), (of(400, 400, dtype="float16"),), None),  # moved, not computed
        (lambda x: x.T, (of(400, 400, dtype="bfloat16"),), ROUTINES),
        (convolved, (of(8, 32, 32, 16, dtype="bfloat16"), of(3, 3, 16, 16, dtype="bfloat16")), ROUTINES),
        (convolved, (of(8, 32, 32, 16), of(3, 3, 16, 16)), None),
        (lambda x: jnp.pad(jnp.broadcast_to(x, (10, 10)), 1), (of(),), CONSTANT),
        (lambda x: jnp.pad(jnp.broadcast_to(x, (100, 100)), 1), (of(),), None),  # shorter than XLA's call
        (lambda x: jnp.pad(jnp.broadcast_to(x, (1000, 1000)), 1), (of(),), CONSTANT),
        (lambda x: (jnp.broadcast_to(x, (500, 500)), jnp.zeros((500, 500))), (of(),), None),  # two loops
        (lambda x: x[1:, ::2], (of(1000, 1000),), ROUTINES),
        (lambda x: x[1:, 1:], (of(1000, 1000),), None),
        (lambda x: x.T, (of(1000, 1000),), ROUTINES),
        (lambda x, k: x.at[k].add(1), (of(1_000_000), of(1_000_000, dtype="int32")), ROUTINES),
        (lambda x, k: x.at[k].add(1), (of(1000, 100), of(1000, dtype="int32")), None),
        (lambda x: jnp.cumsum(x, 1), (of(1000, 1000, dtype="float16"),), ROUTINES),
        (jnp.cumsum, (of(1_000_000, dtype="float16"),), None),
        (jnp.cumsum, (of(10_000, dtype="bfloat16"),), None),
        (lambda x: (x, x + 1), (of(1_000_000),), ROUTINES),  # a copy
    ],
)
def test_reason(f, args, reason):
    assert reason_for_xla(pb.trace(f)(*args)) == reason


def test_in_float64_series_are_julias(x64):
    assert reason_for_xla(pb.trace(jax.lax.igamma)(*(of(1000, dtype="float64"),) * 2)) is None


def test_kernels_have_no_symbolic_dimensions_to_estimate():
    (n,) = jax.export.symbolic_shape("n")
    assert reason_for_xla(pb.trace(spectrum)(of(n, 1000))) is None


def said_of(f, x, capfd, **options):
    y = jax.jit(pb.bridge(f, explain=True, **options))(x)
    assert jnp.allclose(y, f(x), atol=1e-3)
    return capfd.readouterr().err


def test_auto_takes_it_and_says_why(capfd):
    x = jnp.linspace(0.0, 1.0, 64_000).reshape(64, 1000)
    assert f"runs as XLA operations: {ROUTINES}" in said_of(spectrum, x, capfd)
    assert "runs as native kernel pybridge_" in said_of(spectrum, x, capfd, execute="julia")


def test_halves_of_a_derivative_are_chosen_apart(capfd):
    x = jnp.linspace(0.0, 1.0, 9)
    g = jax.grad(lambda x: pb.bridge(jnp.sin, explain=True)(x).sum())
    assert jnp.allclose(jax.jit(g)(x), jnp.cos(x))
    first, second = capfd.readouterr().err.splitlines()
    assert "runs as native kernel pybridge_" in first
    assert f"runs as XLA operations: {ONE_LOOP}" in second
