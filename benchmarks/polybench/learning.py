"""Statistics of Polybench and networks of NPBench.

Where the results of a network are probabilities, whose sum is one, their squares are summed.
"""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .kernel import Array, Kernel, Kind, Program, uniform

_NHWC = ("NHWC", "HWIO", "NHWC")


def correlation(m: int, n: int) -> Program:
    """Of m variables in n observations."""

    def program(data):
        deviations = data - data.mean(axis=0)
        spread = jnp.sqrt((deviations**2).mean(axis=0))
        spread = jnp.where(spread <= 0.1, 1.0, spread)
        scaled = deviations / (np.sqrt(n) * spread)
        return (scaled.T @ scaled).at[np.diag_indices(m)].set(1.0)

    return program, uniform((n, m))


def covariance(m: int, n: int) -> Program:
    def program(data):
        deviations = data - data.mean(axis=0)
        return deviations.T @ deviations / (n - 1)

    return program, uniform((n, m))


def _softmax(x: Array) -> Array:
    powers = jnp.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def softmax(n: int, heads: int, length: int) -> Program:
    return lambda x: _softmax(x) ** 2, uniform((n, heads, length, length), dtype=np.float32)


def _layer(x: Array, weights: Array, bias: Array) -> Array:
    return jax.nn.relu(x @ weights + bias)


def mlp(inputs: int, batch: int, *widths: int) -> Program:
    sizes = (inputs, *widths)

    def program(x, *parameters):
        *hidden, (weights, bias) = zip(parameters[::2], parameters[1::2], strict=True)
        for layer in hidden:
            x = _layer(x, *layer)
        return _softmax(x @ weights + bias) ** 2

    shapes = [s for a, b in itertools.pairwise(sizes) for s in ((a, b), (b,))]
    x, *parameters = uniform((batch, inputs), *shapes, dtype=np.float32)
    return program, (x, *(p / p.shape[0] for p in parameters))


def _convolve(x: Array, weights: Array, padding: str = "VALID") -> Array:
    return lax.conv_general_dilated(x, weights, (1, 1), padding, dimension_numbers=_NHWC)


def conv2d(batch: int, inputs: int, outputs: int, window: int, height: int, width: int) -> Program:
    shapes = (batch, height, width, inputs), (window, window, inputs, outputs), (outputs,)
    return lambda x, weights, bias: _convolve(x, weights) + bias, uniform(*shapes, dtype=np.float32)


def _pool(x: Array) -> Array:
    return lax.reduce_window(x, -np.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def lenet(batch: int, height: int, width: int) -> Program:
    def program(x, c1, b1, c2, b2, w1, d1, w2, d2, w3, d3):
        x = _pool(jax.nn.relu(_convolve(x, c1) + b1))
        x = _pool(jax.nn.relu(_convolve(x, c2) + b2))
        x = _layer(_layer(x.reshape(batch, -1), w1, d1), w2, d2)
        return x @ w3 + d3

    def reduced(size: int) -> int:
        return ((size - 4) // 2 - 4) // 2

    flat = 16 * reduced(height) * reduced(width)
    shapes = (5, 5, 1, 6), (6,), (5, 5, 6, 16), (16,), (flat, 120), (120,), (120, 84), (84,), (84, 10), (10,)
    x, *parameters = uniform((batch, height, width, 1), *shapes, dtype=np.float32)
    return program, (x, *(p - 0.5 for p in parameters))


def resnet(batch: int, size: int, wide: int, narrow: int) -> Program:
    """A bottleneck block, its batches normalized."""

    def normalized(x):
        mean, variance = x.mean(axis=0), x.var(axis=0)
        return (x - mean) / jnp.sqrt(variance + 1e-5)

    def program(x, narrowing, middle, widening):
        y = jax.nn.relu(normalized(_convolve(x, narrowing)))
        y = jax.nn.relu(normalized(_convolve(y, middle, "SAME")))
        return jax.nn.relu(normalized(_convolve(y, widening)) + x)

    shapes = (batch, size, size, wide), (1, 1, wide, narrow), (3, 3, narrow, narrow), (1, 1, narrow, wide)
    return program, uniform(*shapes, dtype=np.float32)


KERNELS = tuple(
    Kernel(make.__name__, Kind.LEARNING, make, small, medium, quick, x64)
    for make, small, medium, quick, x64 in (
        (correlation, (80, 100), (240, 260), (4, 6), True),
        (covariance, (80, 100), (240, 260), (4, 6), True),
        (softmax, (16, 16, 128), (32, 8, 256), (2, 2, 4), False),
        (mlp, (3, 8, 3000, 1000, 1000), (3, 8, 30000, 2000, 2000), (3, 2, 5, 4, 3), False),
        (conv2d, (8, 3, 16, 2, 32, 32), (8, 3, 8, 5, 64, 64), (2, 2, 3, 2, 5, 5), False),
        (lenet, (4, 28, 28), (8, 56, 56), (1, 16, 16), False),
        (resnet, (8, 14, 32, 8), (8, 28, 64, 16), (2, 4, 3, 2), False),
    )
)
