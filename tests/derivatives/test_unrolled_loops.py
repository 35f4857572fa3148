"""Loops that tracing has unrolled: their gradients are those of the same loops by `lax.scan`."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import pytest
from agreement import assert_agree
from jax import lax

import pybridge as pb

TRIPS = 200


def damped(y, x, k):
    return 0.5 * jnp.sin(y + 0.01 * k) + x[0] / (1 + k)


def with_elements(y, x, k):
    """The same number in some trips, an element of an array, and a condition on the number."""
    return 0.9 * y + jnp.where(k > 100, x[1], jnp.cos(y * x[0])) / (2 + k)


def vectors(y, x, k):
    """Numbers that go with arrays, and the result of another trip."""
    return jnp.tanh(y * (0.1 + k / 300) + x) - y / (k + 2)


CASES: dict[str, tuple[Callable, jax.Array]] = {
    "numbers": (damped, jnp.asarray(0.3)),
    "conditions": (with_elements, jnp.asarray(0.2)),
    "arrays": (vectors, jnp.asarray([0.1, -0.4, 0.7])),
}
X = jnp.asarray([0.4, 1.3, -0.8])


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("name", CASES)
def test_numbers_that_differ_from_trip_to_trip(name, order):
    step, start = CASES[name]

    def unrolled(x):
        y = start
        for k in range(TRIPS):
            y = step(y, x, float(k))
        return jnp.sum(y)

    def looped(x):
        return jnp.sum(lax.scan(lambda y, k: (step(y, x, k), None), start, jnp.arange(TRIPS) * 1.0)[0])

    derivative = jax.grad if order == 1 else lambda f: lambda x: jax.jvp(jax.grad(f), (x,), (X,))[1]
    found = derivative(pb.bridge(unrolled, execute="julia"))(X)
    assert_agree(found, derivative(looped)(X), name, tolerance=1e-4)
