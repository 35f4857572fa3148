"""Composites have the derivatives of what they are made of; from JAX 0.12 on it refuses to make them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from agreement import assert_agree
from casekit import computed
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


def test_derivatives_are_those_of_the_decomposition():
    def derivatives(f):
        return lambda x: {
            "value": f(x),
            "gradient": jax.grad(loss(f))(x),
            "jvp": jax.jvp(f, (x,), (x,)),
            "second order": jax.grad(lambda x: jnp.vdot(jax.grad(loss(f))(x), X))(x),
            "vmap": jax.vmap(jax.grad(loss(f)))(jnp.stack([x, -x])),
        }

    bridged = [pb.bridge(of(lax.composite), execute=execute) for execute in ("julia", "xla")]
    functions = *bridged, of(lambda f, *_: f)
    *found, expected = computed(list(map(derivatives, functions)), [(X,)] * 3)
    for ours in found:
        for what, wanted in expected.items():
            assert_agree(ours[what], wanted, what)
