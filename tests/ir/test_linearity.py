"""Programs that are linear in their second argument, and Programs that are not."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import pybridge as pb
from pybridge.ir.linearity import is_linear

X = np.array([[0.5, 1.5], [2.0, -1.0]], np.float32)


def looped(x, g):
    return lax.scan(lambda s, row: (s * row + g[0], s @ x), jnp.zeros(2), x)


def counted(x, g):
    return lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * x), (0, g))[1]


LINEAR = [
    lambda x, g: g,
    lambda x, g: jnp.zeros_like(x),
    lambda x, g: -2 * g * jnp.sin(x) + g.T / x,
    lambda x, g: (x @ g).sum(0),
    lambda x, g: jnp.where(x > 0, g, 0.0),
    lambda x, g: jnp.concatenate([g, jnp.zeros((1, 2))])[jnp.argmax(x, 0)],
    lambda x, g: jnp.zeros((4, 2)).at[jnp.argmax(x, 0)].add(g),
    lambda x, g: lax.cond(x[0, 0] > 0, lambda g: 2 * g, lambda g: g * x, g),
    lambda x, g: jax.checkpoint(lambda g: jnp.cumsum(g * x, 1))(g),
    lambda x, g: jnp.linalg.solve(x, g),
    lambda x, g: jnp.fft.fft(g).real,
    looped,
    counted,
]

OTHERS = [
    lambda x, g: jnp.clip(g, -1, 1),
    lambda x, g: jnp.where(g > 0, g, 0.0),
    lambda x, g: g / jnp.linalg.norm(g),
    lambda x, g: g + 0.1 * x,
    lambda x, g: jnp.ones_like(x),
    lambda x, g: jnp.round(g * 127) / 127,
    lambda x, g: jnp.sign(g),
    lambda x, g: g * g,
    lambda x, g: x / g,
    lambda x, g: jnp.abs(g),
    lambda x, g: g.astype(jnp.bfloat16).astype(jnp.float32),
    lambda x, g: g.astype(jnp.int32).astype(jnp.float32),
    lambda x, g: jnp.concatenate([g, x]),
    lambda x, g: jnp.where(x > 0, g, x),
    lambda x, g: x[jnp.argmax(g, 0)],
    lambda x, g: lax.cond(g[0, 0] > 0, lambda g: 2 * g, lambda g: g * x, g),
    lambda x, g: lax.cond(x[0, 0] > 0, lambda g: 2 * g, lambda g: x, g),
    lambda x, g: lax.scan(lambda s, row: (s * row + g[0], s), jnp.ones(2), x)[1],
    lambda x, g: lax.while_loop(lambda s: jnp.sum(s) < 3, lambda s: 2 * s, g),
]


def answer(f):
    return is_linear(pb.trace(f)(X, X), [False, True])


@pytest.mark.parametrize("k", range(len(LINEAR)))
def test_linear(k):
    f = LINEAR[k]
    assert all(map(np.allclose, jax.tree.leaves(f(X, 2 * X)), (2 * y for y in jax.tree.leaves(f(X, X)))))
    assert answer(f)


@pytest.mark.parametrize("k", range(len(OTHERS)))
def test_not_linear(k):
    assert not answer(OTHERS[k])


def test_in_two_inputs_together():
    program = pb.trace(lambda a, b: (a + b, a * 2))(X, X)
    assert is_linear(program, [True, True])
    assert not is_linear(program, [True, False])
    assert not is_linear(pb.trace(lambda a, b: a * b)(X, X), [True, True])
