"""`jax.experimental.jet` of bridged functions: JAX's series, of their operations."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agreement import assert_agree
from jax.experimental import jet

import pybridge as pb

X = np.array([0.3, 1.2, 0.8])


def smooth(x, n):
    return jnp.sum(jnp.sin(x) * jnp.exp(x) ** 2) + x[n]


def products(x, n):
    return jnp.tanh(jnp.outer(x, x) @ x) / (1 + n)


def series(f, n):
    terms = [[X * 0.5, X * X, -X]]
    return jet.jet(lambda x: f(x, n), (X,), terms)


@pytest.mark.parametrize("execute", ["julia", "xla"])
@pytest.mark.parametrize("f", [smooth, products])
def test_series_agree(f, execute, x64):
    g, wanted = pb.bridge(f, execute=execute), series(f, 1)
    assert_agree(series(g, 1), wanted, "series", 1e-12)
    assert_agree(jax.jit(lambda: series(jax.jit(g), 1))(), wanted, "jitted", 1e-12)


def test_series_of_derivatives_agree(x64):
    g = pb.bridge(smooth)
    assert_agree(series(jax.grad(g), 1), series(jax.grad(smooth), 1), "gradients", 1e-12)
