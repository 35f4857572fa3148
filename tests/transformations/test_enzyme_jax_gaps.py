"""All that Enzyme-JAX 0.0.16 fails on works here: the differentiated call eager, under vmap, a second time,
through a loop backwards, and with these primitives in it. docs/comparison.md has its messages.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agreement import assert_agree
from casekit import computed
from jax import lax

import pybridge as pb

RNG = np.random.default_rng(16)
X = jnp.asarray(RNG.uniform(0.3, 1.5, (4, 4)), jnp.float32)
V = jnp.asarray(RNG.uniform(-1, 1, (4, 4)), jnp.float32)


def smooth(x):
    return jnp.sum(jnp.sin(x) * x)


@jax.custom_vjp
def clipped_gradient(x):
    """A rule that differentiating the function would not give."""
    return jnp.sum(x**3)


clipped_gradient.defvjp(
    lambda x: (clipped_gradient(x), x), lambda x, cotangent: (jnp.clip(3 * cotangent * x**2, 0, 1),)
)


def squared_until(bound):
    """The loop's trips depend on the data."""

    def f(x):
        return jnp.sum(lax.while_loop(lambda y: jnp.sum(y) < bound, lambda y: y * jnp.exp(y / 9), x))

    return f


def squared_until_by_hand(x):
    """The same loop in Python, on numbers that JAX sees."""
    while jnp.sum(x) < 90.0:
        x = x * jnp.exp(x / 9)
    return jnp.sum(x)


# Each takes a function that bridges, or the identity.
GAPS = {
    "eager use": lambda b: jax.grad(b(smooth))(X),
    "vmap": lambda b: jax.vmap(jax.grad(b(smooth)))(X),
    "vmap inside of grad": lambda b: jax.grad(lambda x: jnp.sum(jax.vmap(b(smooth))(x) ** 2))(X),
    "hessian": lambda b: jax.hessian(b(smooth))(X[0]),
    "grad of grad": lambda b: jax.grad(jax.grad(b(lambda x: jnp.sin(x) * x**2)))(0.7),
    "cholesky": lambda b: jax.grad(b(lambda x: jnp.sum(jnp.linalg.cholesky(x @ x.T + 4 * jnp.eye(4)) * V)))(
        X
    ),
    "fft": lambda b: jax.grad(b(lambda x: jnp.sum(jnp.abs(jnp.fft.fft2(x)) ** 2 * V)))(X),
    "rfft": lambda b: jax.grad(b(lambda x: jnp.sum(jnp.fft.rfft(x).real * V[:, :3])))(X),
    "sort": lambda b: jax.grad(b(lambda x: jnp.sum(jnp.sort(x, axis=1) * V)))(X),
    "custom_vjp": lambda b: jax.grad(b(clipped_gradient))(X),
}


@pytest.mark.parametrize("name", GAPS)
def test_works(name):
    gap = GAPS[name]
    bridges = [functools.partial(pb.bridge, execute=execute) for execute in ("julia", "xla")]
    *jitted, expected = computed([lambda b=b: gap(b) for b in (*bridges, lambda f: f)], [()] * 3)
    for bridge, found in zip(bridges, jitted, strict=True):
        assert_agree(gap(bridge), expected, name)
        assert_agree(found, expected, f"{name}, jit")


def test_reverse_while_loop_natively():
    g = pb.bridge(squared_until(90.0), execute="julia")
    expected = jax.grad(squared_until_by_hand)(X)
    assert_agree(jax.grad(g)(X), expected, "eager")
    assert_agree(jax.jit(jax.grad(g))(X), expected, "jit")


def test_reverse_while_loop_under_xla_with_a_bound():
    g = pb.bridge(squared_until(90.0), execute="xla", while_bound=20)
    expected = jax.grad(squared_until_by_hand)(X)
    assert_agree(jax.grad(g)(X), expected, "eager")
    assert_agree(jax.jit(jax.grad(g))(X), expected, "jit")
