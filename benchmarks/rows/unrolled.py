"""A Python loop that makes a long straight line of operations: from a new process to its gradient.

XLA's compile time and, op by op, JAX's dispatch are what a user waits for here, not arithmetic.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import numpy as np

from ..case import OURS, Case, Requirement, native

EAGER, JITTED = "jax.jacrev eager", "jax.jacrev jitted"
_QUICK = 10


def _product(t):
    x = 1.0
    for p in t:
        x *= p**2 - p**3 - p
    return x


def _gradient(elements: int, side: str, quick: bool) -> Any:
    # Between these bounds a factor's geometric mean is 0.94: a thousand of them stay in float64's range.
    count = _QUICK if quick else elements
    t = np.random.default_rng(0).uniform(-0.65, -0.4, count)
    made = {
        OURS: lambda: jax.jit(jax.jacrev(native(_product))),
        EAGER: lambda: jax.jacrev(_product),
        JITTED: lambda: jax.jit(jax.jacrev(_product)),
    }
    return made[side]()(jax.numpy.asarray(t))


def _case(elements: int, ratio: float | None) -> Case:
    return Case(
        f"unrolled-{elements}",
        f"unrolled loop of {elements}, new process to gradient",
        (Requirement(EAGER, ratio), Requirement(JITTED, ratio)),
        cold=functools.partial(_gradient, elements),
    )


CASES = (_case(200, None), _case(1000, 20))
