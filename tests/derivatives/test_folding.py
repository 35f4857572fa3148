"""Reductions by functions of the user's, where JAX has no derivative or a wrong one: closed forms."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from agreement import assert_agree
from jax import lax

import pybridge as pb

X = np.random.default_rng(3).uniform(0.5, 2, (3, 4))


def _window_product(x):
    return lax.reduce_window(x, 1.0, lax.mul, (2, 2), (1, 2), [(1, 0), (0, 1)])


def _by_logarithms(x):
    return jnp.exp(lax.reduce_window(jnp.log(x), 0.0, lax.add, (2, 2), (1, 2), [(1, 0), (0, 1)]))


def test_a_product_over_windows_has_every_derivative(x64):
    bridged = pb.bridge(_window_product)
    assert_agree(bridged(X), _by_logarithms(X), "value")
    assert_agree(jax.jacfwd(bridged)(X), jax.jacfwd(_by_logarithms)(X), "forward")
    assert_agree(jax.jacrev(bridged)(X), jax.jacrev(_by_logarithms)(X), "reverse")

    def hessian_of(f):
        return jax.hessian(lambda x: jnp.sum(jnp.sin(f(x))))(X)

    assert_agree(hessian_of(bridged), hessian_of(_by_logarithms), "second")


def test_the_function_need_not_commute(x64):
    def compose(a, b):
        return a[0] * b[0], b[0] * a[1] + b[1]

    def f(a, b):
        return lax.reduce((a, b), (jnp.float64(1), jnp.float64(0)), compose, (0,))

    def one_by_one(a, b):
        scale, shift = 1.0, 0.0
        for k in range(len(a)):
            scale, shift = compose((scale, shift), (a[k], b[k]))
        return scale, shift

    a, b = X[0], X[1]
    assert_agree(pb.bridge(f)(a, b), one_by_one(a, b), "value")
    assert_agree(jax.jacrev(pb.bridge(f), (0, 1))(a, b), jax.jacrev(one_by_one, (0, 1))(a, b), "derivative")


def test_pairs_of_a_float_and_an_integer(x64):
    def greater(a, b):
        which = a[0] >= b[0]
        return lax.select(which, a[0], b[0]), lax.select(which, a[1], b[1])

    def f(x):
        places = lax.broadcasted_iota(jnp.int32, x.shape, 1)
        return lax.reduce((x, places), (-jnp.inf, jnp.int32(-1)), greater, (1,))

    assert_agree(pb.bridge(f)(X)[1], np.argmax(X, 1).astype(np.int32), "places")
    expected = jax.jacrev(lambda x: jnp.max(x, 1))(X)
    assert_agree(jax.jacrev(lambda x: pb.bridge(f)(x)[0])(X), expected, "derivative")
