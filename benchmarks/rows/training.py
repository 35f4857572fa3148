"""One step of stochastic gradient descent for a perceptron and for a small convolutional network."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from ..case import Case, Problem, Requirement, native

JIT = "JAX"
_RATE = 0.05


def _cross_entropy(scores, labels):
    return -jnp.mean(jnp.sum(jax.nn.log_softmax(scores) * labels, axis=-1))


def _perceptron(parameters, images, labels):
    *hidden, (last, offset) = parameters
    x = images
    for weight, bias in hidden:
        x = jax.nn.relu(x @ weight + bias)
    return _cross_entropy(x @ last + offset, labels)


def _pooled(x):
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def _convolutional(parameters, images, labels):
    *layers, (last, offset) = parameters
    x = images
    for weight, bias in layers:
        x = jax.lax.conv_general_dilated(
            x, weight, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        x = _pooled(jax.nn.relu(x + bias))
    return _cross_entropy(x.reshape(x.shape[0], -1) @ last + offset, labels)


def _step(loss: Callable, parameters, images, labels):
    value, slopes = jax.value_and_grad(loss)(parameters, images, labels)
    return value, jax.tree.map(lambda p, s: p - _RATE * s, parameters, slopes)


def _problem(loss: Callable, shapes: list[tuple[int, ...]], images: tuple[int, ...]) -> Problem:
    """Weights of these shapes, the last axis being the layer's outputs; ten classes."""
    random = np.random.default_rng(0)
    parameters = [
        (
            (random.standard_normal(shape) / np.sqrt(np.prod(shape[:-1]))).astype(np.float32),
            np.zeros(shape[-1], np.float32),
        )
        for shape in shapes
    ]
    labels = np.eye(shapes[-1][-1], dtype=np.float32)[random.integers(0, shapes[-1][-1], images[0])]
    theirs = functools.partial(_step, loss)
    args = parameters, random.standard_normal(images, np.float32), labels
    return Problem(functools.partial(_step, native(loss)), theirs, {JIT: theirs}, args)


def _mlp(quick: bool) -> Problem:
    batch, *sizes = (4, 6, 5, 3) if quick else (128, 784, 512, 256, 10)
    return _problem(_perceptron, list(itertools.pairwise(sizes)), (batch, sizes[0]))


def _cnn(quick: bool) -> Problem:
    batch, edge, one, two = (2, 8, 2, 3) if quick else (32, 28, 16, 32)
    shapes = [(3, 3, 1, one), (3, 3, one, two), ((edge // 4) ** 2 * two, 10)]
    return _problem(_convolutional, shapes, (batch, edge, edge, 1))


def _case(name: str, title: str, make: Callable[[bool], Problem]) -> Case:
    return Case(name, title, (Requirement(JIT, 1),), make, tolerance=1e-5, x64=False)


CASES = (
    _case("mlp", "MLP 784-512-256-10, training step of 128, f32", _mlp),
    _case("cnn", "CNN of two convolutions, training step of 32, f32", _cnn),
)
