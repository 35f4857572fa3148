"""The sum of the squared differences between neighbours in a cube, and its gradient: total variation."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from ..case import Case, Problem, Requirement, against_grad, gradient, native

_JIT = "JAX"
_EDGE = 128


def _roughness(x):
    return sum(jnp.sum(jnp.diff(x, axis=axis) ** 2) for axis in range(3))


def _cube(quick: bool) -> np.ndarray:
    edge = 5 if quick else _EDGE
    return np.random.default_rng(0).standard_normal((edge, edge, edge), np.float32)


def _value(quick: bool) -> Problem:
    return Problem(native(_roughness), _roughness, {_JIT: _roughness}, (_cube(quick),))


def _gradient(quick: bool) -> Problem:
    return gradient(_roughness, (_cube(quick),))


CASES = (
    Case(
        "differences-value",
        f"squared finite differences, {_EDGE}³ f32",
        (Requirement(_JIT, 5),),
        _value,
        tolerance=1e-5,
        x64=False,
    ),
    Case(
        "differences-gradient",
        "- their gradient",
        against_grad(1),
        _gradient,
        tolerance=1e-5,
        x64=False,
    ),
)
