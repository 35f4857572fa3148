"""equinox: modules are pytrees that hold their own static parts; an LSTM scanned over a sequence."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from sameness import assert_same_gradient, both_executes

RNG = np.random.default_rng(6)


class TransformerBlock(eqx.Module):
    attention: eqx.nn.MultiheadAttention
    norms: list[eqx.nn.LayerNorm]
    mlp: eqx.nn.MLP

    def __init__(self, key):
        first, second = jax.random.split(key)
        self.attention = eqx.nn.MultiheadAttention(2, 8, key=first)
        self.norms = [eqx.nn.LayerNorm(8), eqx.nn.LayerNorm(8)]
        self.mlp = eqx.nn.MLP(8, 8, 16, depth=1, activation=jax.nn.gelu, key=second)

    def __call__(self, x):
        y = jax.vmap(self.norms[0])(x)
        x = x + self.attention(y, y, y, mask=jnp.tril(jnp.ones((len(x), len(x)), bool)))
        return x + jax.vmap(self.mlp)(jax.vmap(self.norms[1])(x))


@both_executes
def test_transformer_block_over_a_batch(execute):
    params, static = eqx.partition(TransformerBlock(jax.random.key(0)), eqx.is_inexact_array)
    x = jnp.asarray(RNG.standard_normal((3, 5, 8)), jnp.float32)

    def loss(params, x):
        return jnp.mean(jax.vmap(eqx.combine(params, static))(x) ** 2)

    assert_same_gradient(loss, params, x, execute=execute, argnums=(0, 1))


class Recurrent(eqx.Module):
    cell: eqx.nn.LSTMCell
    last: eqx.nn.Linear

    def __init__(self, key):
        first, second = jax.random.split(key)
        self.cell = eqx.nn.LSTMCell(3, 6, key=first)
        self.last = eqx.nn.Linear(6, 2, key=second)

    def __call__(self, xs):
        start = (jnp.zeros(6), jnp.zeros(6))
        (hidden, _), _ = lax.scan(lambda carry, x: (self.cell(x, carry), None), start, xs)
        return self.last(hidden)


@both_executes
def test_lstm(execute):
    params, static = eqx.partition(Recurrent(jax.random.key(1)), eqx.is_inexact_array)
    xs = jnp.asarray(RNG.standard_normal((4, 9, 3)), jnp.float32)

    def loss(params, xs):
        return jnp.mean(jax.nn.log_softmax(jax.vmap(eqx.combine(params, static))(xs))[:, 0])

    assert_same_gradient(loss, params, xs, execute=execute)
