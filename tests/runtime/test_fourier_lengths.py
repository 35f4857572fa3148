"""Fourier transforms of lengths with large prime factors: accuracy against numpy, and the time they take."""

from __future__ import annotations

import itertools
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from covering import covering

import pybridge as pb

PRIME = 99991
SHAPES = [(4 * 127,), (3, 101), (2, 101, 67), (3, 2 * 211)]
ERRORS = {"float32": 2e-6, "float64": 3e-15}
"""Relative to the largest element, of a transform."""


def error(found, expected) -> float:
    return float(np.max(np.abs(np.asarray(found) - expected)) / np.max(np.abs(expected)))


def drawn(shape, dtype: str, kind: str) -> np.ndarray:
    rng = np.random.default_rng(0)
    x = rng.normal(size=shape)
    return (x if kind == "rfft" else x + 1j * rng.normal(size=shape)).astype(
        dtype if kind == "rfft" else np.result_type(dtype, np.complex64)
    )


def transformed(library, x, kind: str, axes):
    many = {"fft": "fftn", "ifft": "ifftn", "rfft": "rfftn", "irfft": "irfftn"}[kind]
    sizes = [2 * (x.shape[a] - 1) + (a == axes[-1]) for a in axes[-1:]] if kind == "irfft" else None
    lengths = None if sizes is None else [*(x.shape[a] for a in axes[:-1]), *sizes]
    return getattr(library.fft, many)(x, s=lengths, axes=axes)


VARIANTS = list(itertools.product(ERRORS, ["fft", "ifft", "rfft", "irfft"]))


@pytest.mark.parametrize("shape, variant", covering(SHAPES, VARIANTS, least=1), ids=str)
def test_lengths_with_large_primes(shape, variant, x64):
    dtype, kind = variant
    axes = tuple(range(len(shape)))[-2:]
    x = drawn(shape, dtype, kind)
    expected = transformed(np, x.astype(np.result_type(x, np.float64)), kind, axes)
    program = pb.trace(lambda x: transformed(jnp, x, kind, axes))(x)
    native = pb.bridge(lambda x: transformed(jnp, x, kind, axes), execute="julia")
    assert error(program.call(x), expected) < ERRORS[dtype]
    assert error(native(x), expected) < ERRORS[dtype]


@pytest.mark.parametrize("kind", ["fft", "rfft"])
def test_derivatives(kind, x64):
    x = drawn((3, 2 * 127), "float64", kind)

    def f(x):
        y = transformed(jnp, x, kind, (1,))
        return (jnp.abs(y) ** 2 * jnp.arange(1.0, y.shape[1] + 1)).sum() / x.size

    expected = np.asarray(jax.grad(f)(x))
    assert error(jax.grad(pb.bridge(f, execute="julia"))(x), expected) < 1e-13
    (gradient,) = pb.trace(f)(x).vjp().call(x, np.float64(1))
    assert error(gradient, expected) < 1e-13


def test_a_large_prime_takes_no_time_that_is_quadratic(x64):
    x = drawn((PRIME,), "float64", "fft")
    expected = np.fft.fft(x)
    program, native = pb.trace(jnp.fft.fft)(x), pb.bridge(jnp.fft.fft, execute="julia")
    for f in (program.call, native):
        assert error(f(x), expected) < 1e-14
        start = time.process_time()
        f(x)
        assert time.process_time() - start < 20
