"""Long code with little to repeat: what a user waits for is its compilation, on either side.

The formulas are taken in turn, or at random, so that it cannot be rolled into loops; 600 sines can be.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from ..case import GRAD, Case, Problem, Requirement, gradient

_FORMULAS: tuple[Callable, ...] = (
    jnp.sin,
    jnp.tanh,
    jnp.cos,
    jnp.exp,
    lambda x: x / (1 + x * x),
    lambda x: x * x,
)
_QUICK = 6


def _in_turn(k: int) -> Callable:
    return _FORMULAS[k % len(_FORMULAS)]


def _numbers(*shape: int) -> jax.Array:
    return jnp.asarray(np.random.default_rng(0).standard_normal(shape))


def _arguments(count: int) -> Problem:
    """Of as many arrays as a model has parameters, a term each."""

    def loss(*xs):
        return sum(jnp.sum(_in_turn(k)(x) * (k + 1)) for k, x in enumerate(xs))

    return gradient(loss, tuple(_numbers(count, 5)), tuple(range(count)))


def _pieces(count: int) -> Problem:
    """A vector of pieces by a formula each."""

    def loss(x):
        pieces = [_in_turn(k)(x[3 * k : 3 * k + 3] * (1 + k / count)) for k in range(count)]
        return jnp.sum(jnp.concatenate(pieces) ** 2)

    return gradient(loss, (_numbers(3 * count),))


def _sines(count: int) -> Problem:
    """Sines of sines, whose factors differ."""

    def loss(x):
        y = x
        for k in range(count):
            y = jnp.sin(y * (1 + 0.01 * k)) + x
        return jnp.sum(y)

    return gradient(loss, (_numbers(10),))


def _steps(count: int) -> Problem:
    """Steps that are a formula of the one before, chosen at random."""
    r = np.random.default_rng(1)
    order, factors = r.integers(0, len(_FORMULAS), count), r.uniform(0.25, 0.75, count)

    def loss(x):
        y = x
        for k, factor in zip(order, factors, strict=True):
            y = _FORMULAS[k](factor * y) + 0.1 * x
        return jnp.sum(y)

    return gradient(loss, (_numbers(10),))


def _case(name: str, title: str, make: Callable[[int], Problem], count: int) -> Case:
    return Case(
        f"{name}-{count}",
        f"{count} {title}",
        (Requirement(GRAD, None),),
        functools.partial(_sized, make, count),
    )


def _sized(make: Callable[[int], Problem], count: int, quick: bool) -> Problem:
    return make(_QUICK if quick else count)


CASES = (
    _case("arguments", "arguments, a term each", _arguments, 300),
    _case("pieces", "pieces of a vector, a formula each", _pieces, 400),
    _case("sines", "sines of sines", _sines, 600),
    _case("steps", "steps, a formula at random", _steps, 400),
)
