"""Tangents that nobody uses, of functions that have none: JAX drops them under jit, in Programs too.

A callback makes a function one that JAX binds between Programs, and reads a value without its tangent.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from agreement import assert_agree
from jax import lax

import pybridge as pb


@jax.custom_vjp
def held(x):
    """Forward mode would be an error."""
    jax.debug.callback(lambda _: None, x)
    return jnp.sin(x)


held.defvjp(lambda x: (held(x), x), lambda x, ct: (jnp.cos(x) * ct,))


def branch(x, y):
    return lax.cond(x > 0, lambda y: (y, jnp.cos(x)), lambda y: (2 * y, x), y)


def checkpointed(x, y):
    return jax.checkpoint(lambda y: (jnp.sin(y), jnp.cos(x)))(y)


def scanned(x, y):
    return lax.scan(lambda s, _: ((s[0] * s[0], s[1] * x), None), (y, x), None, length=3)[0]


def counted(x, y):
    step = lambda s: (s[0] + 1, s[1] * s[1], s[2] * x)  # noqa: E731
    return lax.while_loop(lambda s: s[0] < 3, step, (0, y, x))[1:]


@pytest.mark.parametrize("execute", ["xla", "julia"])
@pytest.mark.parametrize("of", [branch, checkpointed, scanned, counted])
def test_a_tangent_in_a_body_is_dropped_with_the_result_that_has_it(of, execute, x64):
    if of is counted and jax.__version_info__ < (0, 12):
        pytest.skip("JAX before 0.12 has no such tangent of a while loop to compare with")

    def f(x):
        watched, result = of(x, held(x))
        jax.debug.callback(lambda _: None, watched)
        return result

    def along(f):
        return jax.jit(lambda x: jax.jvp(f, (x,), (1.0,)))

    assert_agree(along(pb.bridge(f, execute=execute))(0.7), along(f)(0.7), "value and tangent", 1e-12)
