"""The VJP of sin(a x)^2 / a for a batch of sequences: by JAX, and by the formula written out by hand."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np

from ..case import Case, Problem, Requirement, native

_LENGTHS = (512, 1024, 2048, 4096, 8192, 16384)
_VJP, _BY_HAND, _MEMORY = "jax.vjp", "custom_vjp", "x*g"
_LONG = 2048  # from here on the arrays do not fit the caches, and memory is the limit


def f(x, a):
    return jnp.sin(a * x) ** 2 / a


by_hand = jax.custom_vjp(f)


def _forward(x, a):
    return f(x, a), (x, a)


def _backward(residuals, g):
    x, a = residuals
    s, c = jnp.sin(a * x), jnp.cos(a * x)
    dx = 2 * s * c * g
    da = jnp.sum((2 * x * s * c / a - s**2 / a**2) * g, axis=(0, 1))
    return dx, da


by_hand.defvjp(_forward, _backward)


def _vjp(function, x, a, g):
    return jax.vjp(function, x, a)[1](g)


def _problem(length: int, quick: bool) -> Problem:
    random = np.random.default_rng(0)
    shape = (2, 8, 64) if quick else (32, length, 64)
    x, g = (random.standard_normal(shape, np.float32) for _ in range(2))
    a = random.uniform(0.5, 2.0, 64).astype(np.float32)
    theirs = functools.partial(_vjp, f)
    rivals = {_VJP: theirs, _BY_HAND: functools.partial(_vjp, by_hand), _MEMORY: lambda x, a, g: x * g}
    return Problem(functools.partial(_vjp, native(f)), theirs, rivals, (x, a, g))


def _case(length: int) -> Case:
    memory = Requirement(_MEMORY, 1 / 1.2 if length >= _LONG else None)
    speed = (Requirement(_VJP, 15), Requirement(_BY_HAND, 15))
    return Case(
        f"seed-{length}",
        f"VJP of sin(a x)²/a, x (32, {length}, 64) f32",
        (*speed, memory),
        functools.partial(_problem, length),
        tolerance=1e-5,
        x64=False,
    )


CASES = tuple(map(_case, _LENGTHS))
