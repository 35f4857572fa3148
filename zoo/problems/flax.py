"""flax: both of its interfaces."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import optax
from flax import linen, nnx


def nnx_transformer():
    """Two blocks of attention over sequences of 32 tokens, by nnx."""

    class Block(nnx.Module):
        def __init__(self, rngs):
            self.attention = nnx.MultiHeadAttention(4, 32, decode=False, rngs=rngs)
            self.norms = nnx.List([nnx.LayerNorm(32, rngs=rngs), nnx.LayerNorm(32, rngs=rngs)])
            self.wide, self.narrow = nnx.Linear(32, 64, rngs=rngs), nnx.Linear(64, 32, rngs=rngs)

        def __call__(self, x):
            mask = nnx.make_causal_mask(jnp.ones(x.shape[:2]))
            x = x + self.attention(self.norms[0](x), mask=mask)
            return x + self.narrow(nnx.gelu(self.wide(self.norms[1](x))))

    class Model(nnx.Module):
        def __init__(self, rngs):
            self.embed = nnx.Embed(50, 32, rngs=rngs)
            self.blocks = nnx.List([Block(rngs), Block(rngs)])

        def __call__(self, tokens):
            x = self.embed(tokens)
            for block in self.blocks:
                x = block(x)
            return self.embed.attend(x)

    graph, params = nnx.split(Model(nnx.Rngs(0)), nnx.Param)
    tokens = jax.random.randint(jax.random.key(1), (8, 33), 0, 50)

    def loss(params):
        logits = nnx.merge(graph, params)(tokens[:, :-1])
        return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:]))

    return loss, (params,)


def linen_recurrent():
    """An LSTM by linen, lifted over time by its own scan."""
    network = linen.RNN(linen.OptimizedLSTMCell(24))
    sequences = jax.random.normal(jax.random.key(2), (16, 40, 6))
    targets = jnp.cumsum(sequences[..., 0], axis=1)
    readout = linen.Dense(1)
    first, second = jax.random.split(jax.random.key(3))
    params = {
        "network": network.init(first, sequences),
        "readout": readout.init(second, jnp.zeros((16, 40, 24))),
    }

    def loss(params):
        hidden = network.apply(params["network"], sequences)
        return jnp.mean((readout.apply(params["readout"], hidden)[..., 0] - targets) ** 2)

    return loss, (params,)


def linen_convolutions():
    """Convolutions with batch statistics and pooling, by linen."""

    class Classifier(linen.Module):
        @linen.compact
        def __call__(self, x):
            for width in (8, 16):
                x = linen.Conv(width, (3, 3), use_bias=False)(x)
                x = linen.BatchNorm(use_running_average=False)(x)
                x = linen.max_pool(linen.relu(x), (2, 2), strides=(2, 2))
            return linen.Dense(10)(x.reshape(len(x), -1))

    images = jax.random.normal(jax.random.key(5), (16, 16, 16, 1))
    digits = jnp.arange(16) % 10
    variables = Classifier().init(jax.random.key(6), images)

    def loss(params):
        logits, _ = Classifier().apply(
            {"params": params, "batch_stats": variables["batch_stats"]}, images, mutable=["batch_stats"]
        )
        return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, digits))

    return loss, (variables["params"],)
