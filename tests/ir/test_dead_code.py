"""Programs of some of their results: what only the others need is gone, in loops and branches too."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import pybridge as pb
from pybridge.frontend.emission import to_jax
from pybridge.ir.dead_code import needed_inputs, restricted, with_inputs

ARGS = (1.5, 0.5, 2.0)


def branch(a, b, c):
    return lax.cond(a > 1, lambda b, c: (jnp.sin(b) * a, c * c), lambda b, c: (b, c), b, c)


def checkpointed(a, b, c):
    return jax.checkpoint(lambda b, c: (jnp.sin(b) * a, c * c))(b, c)


def scanned(a, b, c):
    """What is carried of `c` depends on `b`, and not the other way round."""

    def step(carried, x):
        s, t = carried
        return (jnp.sin(s) * a + x, t * s + c), None

    return lax.scan(step, (b, c), jnp.arange(4.0))[0]


def stacked(a, b, c):
    return lax.scan(lambda s, x: (s * a, (s + b, x * c)), 1.0, jnp.arange(4.0))[1]


def counted(a, b, c):
    """A condition needs what it reads."""
    step = lambda s: (s[0] + 1, jnp.sin(s[1]) * a, s[2] * s[1] + c)  # noqa: E731
    return lax.while_loop(lambda s: s[0] < 5, step, (0, b, c))[1:]


def nested(a, b, c):
    def step(carried, _):
        return branch(a, *carried), None

    return lax.scan(step, (b, c), None, length=3)[0]


@pytest.mark.parametrize("of", [branch, checkpointed, scanned, stacked, counted, nested])
def test_only_what_a_result_needs_stays(of):
    program = pb.trace(of)(*ARGS)
    wanted = of(*ARGS)
    found = []
    for k in range(2):
        alive = restricted(program, [i == k for i in range(2)])
        needed = needed_inputs(alive)
        (y,) = to_jax(with_inputs(alive, needed))(*(x for x, n in zip(ARGS, needed, strict=True) if n))
        np.testing.assert_allclose(y, wanted[k], rtol=1e-6)
        found.append(needed)
    first, second = found
    assert not first[2]
    assert second[2]
    assert second[1] == (of in (scanned, counted))
