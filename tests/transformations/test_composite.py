"""Composites have the derivatives of what they are made of; from JAX 0.12 on it refuses to make them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agreement import assert_agree
from jax import lax

import pybridge as pb

X = jnp.asarray(np.random.default_rng(79).uniform(-1, 1, (3,)), jnp.float32)


def of(composite):
    """A function of composites, one of which is in another."""

    def gelu(x, *, scale):
        return scale * x * jax.nn.sigmoid(1.7 * x)

    gelu = composite(gelu, "test.gelu", 2)

    def pair(x, y):
        return {"sum": gelu(x, scale=0.5) + y, "count": jnp.int32(x.size)}

    pair = composite(pair, "test.pair", 1)

    def f(x):
        made = pair(x, jnp.cos(x))
        scanned = lax.scan(lambda c, k: (gelu(c, scale=2.0) * k, c.sum()), x, jnp.array([1.0, 0.5]))
        return made["sum"] * made["count"], scanned, jax.checkpoint(lambda x: gelu(x, scale=1.0))(jnp.sin(x))

    return f


def loss(f):
    return lambda x: sum(jnp.sum(jnp.tanh(y)) for y in jax.tree.leaves(f(x)))


@pytest.mark.parametrize("execute", ["julia", "xla"])
def test_derivatives_are_those_of_the_decomposition(execute):
    g, f = pb.bridge(of(lax.composite), execute=execute), of(lambda f, *_: f)
    assert_agree(g(X), f(X), "value")
    assert_agree(jax.jit(jax.grad(loss(g)))(X), jax.grad(loss(f))(X), "gradient")
    assert_agree(jax.jvp(g, (X,), (X,)), jax.jvp(f, (X,), (X,)), "jvp")

    def of_gradient(f):
        return jax.grad(lambda x: jnp.vdot(jax.grad(loss(f))(x), X))(X)

    assert_agree(of_gradient(g), of_gradient(f), "second order")
    batch = jnp.stack([X, -X])
    assert_agree(jax.vmap(jax.grad(loss(g)))(batch), jax.vmap(jax.grad(loss(f)))(batch), "vmap")
