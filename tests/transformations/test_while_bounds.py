"""`while_bound`: a loop that runs longer has NaN for a derivative, and an error where it can be seen."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pybridge as pb

TRIPS = 11


def grown(x):
    """Its loop runs 11 times at 1.1, and how often depends on x."""

    def going(state):
        return (state[0] < 10) & (state[1].sum() < 100) | (state[0] < TRIPS)

    return jax.lax.while_loop(going, lambda s: (s[0] + 1, x * s[1]), (0, jnp.ones((2,), x.dtype)))[1].sum()


def nested(x):
    def inner(y):
        return jax.lax.while_loop(lambda s: s[0] < s[1] + 8, lambda s: (s[0] * x, s[1]), (y, y))[0]

    return jax.lax.scan(lambda c, _: (jnp.sqrt(inner(c)), None), x, length=2)[0]


X = np.float32(1.1)


@pytest.mark.parametrize("execute", ["xla", "auto"])
@pytest.mark.parametrize("derivative", [jax.grad, jax.jacfwd, jax.hessian])
def test_a_bound_that_is_too_small_gives_nan_and_an_error(execute, derivative):
    short = pb.bridge(grown, execute=execute, while_bound=TRIPS - 1)
    enough = pb.bridge(grown, execute=execute, while_bound=TRIPS)
    assert np.isnan(jax.jit(derivative(short))(X))
    if derivative is not jax.hessian:  # in whose vmap there are no values to see
        with pytest.raises(pb.NotDifferentiable, match="grown runs longer than its while_bound"):
            derivative(short)(X)
    expected = {jax.grad: 22 * X**10, jax.jacfwd: 22 * X**10, jax.hessian: 220 * X**9}[derivative]
    for found in (derivative(enough)(X), jax.jit(derivative(enough))(X)):
        np.testing.assert_allclose(found, expected, rtol=1e-5)
    np.testing.assert_allclose(short(X), 2 * X**11, rtol=1e-5)  # the value needs no bound


def test_loops_in_loops():
    expected = jax.jvp(nested, (X,), (np.float32(1),))[1]
    for bound, right in ((8, False), (40, True)):
        found = jax.jit(jax.grad(pb.bridge(nested, execute="xla", while_bound=bound)))(X)
        assert np.isnan(found) != right
        if right:
            np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_a_nan_of_the_function_itself_is_none_of_the_bound():
    g = pb.bridge(lambda x: grown(x) * jnp.log(-x), execute="xla", while_bound=20)
    assert np.isnan(jax.grad(g)(X))


def test_a_bound_that_is_not_needed_is_not_used():
    native = pb.bridge(grown, execute="julia", while_bound=2)
    np.testing.assert_allclose(jax.grad(native)(X), 22 * X**10, rtol=1e-5)

    def counted(x):
        return jax.lax.fori_loop(0, 5, lambda _, y: x * y, x)

    np.testing.assert_allclose(jax.grad(pb.bridge(counted, while_bound=2))(X), 6 * X**5, rtol=1e-5)
