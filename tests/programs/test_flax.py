"""flax: a transformer block (linen: attention, dropout, layer norm) and a ResNet block (nnx and linen)."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen, nnx
from sameness import assert_same_gradient, both_executes

RNG = np.random.default_rng(5)
IMAGES = jnp.asarray(RNG.standard_normal((2, 8, 8, 4)), jnp.float32)
LABELS = jnp.asarray([1, 3])


class TransformerBlock(linen.Module):
    """A pre-norm decoder block, causal, with dropout."""

    heads: int

    @linen.compact
    def __call__(self, tokens, train: bool):
        x = linen.Embed(11, 16)(tokens)
        mask = linen.make_causal_mask(tokens)
        y = linen.LayerNorm()(x)
        x += linen.MultiHeadDotProductAttention(self.heads, dropout_rate=0.1, deterministic=not train)(
            y, mask=mask
        )
        y = linen.Dense(32)(linen.LayerNorm()(x))
        y = linen.Dropout(0.2, deterministic=not train)(linen.gelu(y))
        return linen.Dense(11)(x + linen.Dense(16)(y))


@both_executes
def test_transformer_block(execute):
    tokens = jnp.asarray(RNG.integers(0, 11, (2, 7)))
    model = TransformerBlock(heads=2)
    params = model.init(jax.random.key(0), tokens, train=False)

    def loss(params, tokens, key):
        logits = model.apply(params, tokens[:, :-1], train=True, rngs={"dropout": key})
        return optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:]).mean()

    assert_same_gradient(loss, params, tokens, jax.random.key(1), execute=execute)


class LinenResNetBlock(linen.Module):
    """The bottleneck block with batch statistics, on half as many pixels, and a classifier."""

    @linen.compact
    def __call__(self, x, train: bool):
        def norm():
            return linen.BatchNorm(use_running_average=not train, momentum=0.9)

        y = linen.relu(norm()(linen.Conv(4, (1, 1), use_bias=False)(x)))
        y = linen.relu(norm()(linen.Conv(4, (3, 3), strides=2, use_bias=False)(y)))
        y = norm()(linen.Conv(8, (1, 1), use_bias=False)(y))
        short = norm()(linen.Conv(8, (1, 1), strides=2, use_bias=False)(x))
        y = linen.max_pool(linen.relu(y + short), (2, 2), strides=(2, 2))
        return linen.Dense(5)(y.mean((1, 2)))


@both_executes
def test_resnet_block_with_batch_statistics(execute):
    model = LinenResNetBlock()
    variables = model.init(jax.random.key(0), IMAGES, train=False)

    def loss(params, statistics, images):
        logits, updated = model.apply(
            {"params": params, "batch_stats": statistics}, images, train=True, mutable=["batch_stats"]
        )
        return optax.softmax_cross_entropy_with_integer_labels(logits, LABELS).mean(), updated

    assert_same_gradient(
        loss, variables["params"], variables["batch_stats"], IMAGES, execute=execute, has_aux=True
    )


class NnxResNetBlock(nnx.Module):
    def __init__(self, rngs: nnx.Rngs):
        self.first = nnx.Conv(4, 6, (3, 3), strides=2, rngs=rngs)
        self.norm = nnx.GroupNorm(6, num_groups=2, rngs=rngs)
        self.second = nnx.Conv(6, 6, (3, 3), feature_group_count=3, rngs=rngs)
        self.short = nnx.Conv(4, 6, (1, 1), strides=2, rngs=rngs)
        self.last = nnx.Linear(6, 5, rngs=rngs)

    def __call__(self, x):
        y = self.second(nnx.silu(self.norm(self.first(x))))
        return self.last(nnx.avg_pool(nnx.relu(y + self.short(x)), (2, 2)).mean((1, 2)))


@both_executes
def test_nnx_resnet_block(execute):
    definition, params = nnx.split(NnxResNetBlock(nnx.Rngs(0)))

    def loss(params, images):
        logits = nnx.merge(definition, params)(images)
        return optax.softmax_cross_entropy_with_integer_labels(logits, LABELS).mean()

    assert_same_gradient(loss, params, IMAGES, execute=execute)
