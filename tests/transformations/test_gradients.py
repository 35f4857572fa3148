"""Reverse mode of functions of one real number: one Program computes the gradient with the value."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agreement import assert_agree
from bound_programs import programs_in
from casekit import QUICK
from covering import covering
from jax import lax

import pybridge as pb

X, W = np.random.default_rng(0).uniform(0.5, 1, (5, 3)), np.random.default_rng(1).uniform(0.5, 1, 3)


def loss(x, w):
    """A loop, a product and sums."""
    state, seen = lax.scan(lambda s, row: (jnp.tanh(s * row + w), jnp.sum(s)), w, x)
    return jnp.sum(jnp.sin(state)) * jnp.sum(seen**2) + jnp.sum((x @ w) ** 2)


def count(of, *args):
    return len(list(programs_in(jax.make_jaxpr(of)(*args).jaxpr)))


g = pb.bridge(loss, execute="julia")


def test_a_gradient_is_one_program(x64):
    assert count(jax.grad(g, (0, 1)), X, W) == 1
    assert count(jax.value_and_grad(g), X, W) == 1
    assert count(jax.grad(pb.bridge(loss, execute="xla")), X, W) == 2  # XLA sees both at once anyway
    vector = pb.bridge(lambda x, w: loss(x, w)[None], execute="julia")
    assert count(lambda x: jax.vjp(lambda x: vector(x, W), x)[1](jnp.ones(1)), X) == 2


WAYS = [
    lambda f: jax.grad(f),
    lambda f: jax.value_and_grad(f, (0, 1)),
    lambda f: lambda x, w: jax.vjp(f, x, w)[1](-2.5),
    lambda f: lambda x, w: jax.vjp(f, x, w)[1](jnp.sum(w)),
    lambda f: lambda x, w: jax.linearize(f, x, w)[1](x * x, w),
    lambda f: jax.grad(lambda x, w: 3.0 * f(x, w) ** 2, (0, 1)),
    lambda f: jax.grad(lambda x, w: f(x, w) + f(w * x, jnp.sin(w)), (0, 1)),
    lambda f: jax.hessian(f, (0, 1)),
    lambda f: jax.jacrev(jax.grad(f, (0, 1)), (0, 1)),
    lambda f: jax.jacfwd(jax.grad(jax.jit(f), (0, 1)), (0, 1)),
    lambda f: lambda x, w: jax.jvp(jax.grad(f, (0, 1)), (x, w), (w * x, w))[1],
    lambda f: jax.grad(lambda x, w: jnp.sum(jax.jvp(jax.grad(f), (x, w), (x, w))[1] ** 2), (0, 1)),
    lambda f: lambda x, w: jax.vmap(jax.grad(f, (0, 1)), (None, 0))(x, x),
    lambda f: jax.grad(lambda x, w: jax.vmap(f, (None, 0))(x, w * x).sum(), (0, 1)),
    lambda f: jax.grad(jax.checkpoint(f), (0, 1)),
    lambda f: jax.grad(lambda x, w: lax.scan(lambda c, w: (c + f(x, w), None), 0.0, x)[0], (0, 1)),
]


@pytest.mark.parametrize(("k", "jitted"), covering(range(len(WAYS)), [False, True], least=1))
def test_transformations_agree(k, jitted, x64):
    of = WAYS[k]
    quick = functools.partial(jax.jit, compiler_options=QUICK)
    with_jit = quick if jitted else lambda f: f
    assert_agree(with_jit(of(g))(X, W), quick(of(loss))(X, W), "value", 1e-10)


def test_other_results_and_arguments(x64):
    """Integers next to the number, integer arguments, and a number of another dtype than the arguments."""

    def f(x, n, w):
        y = jnp.sum(x.astype(jnp.float64) ** 2 * n) + jnp.sum(w)
        return y, jnp.argmax(x), n + 1

    x, n, w = np.float32(W), np.int32(3), np.float64(X)
    bridged = pb.bridge(f, execute="julia")
    for h, k in ((bridged, f), (jax.jit(bridged), f)):
        found, wanted = (jax.value_and_grad(lambda *a, h=h: h(*a)[0], (0, 2))(x, n, w) for h in (h, k))
        assert_agree(found, wanted, "value", 1e-6)
        assert found[1][0].dtype == np.float32 and found[1][1].dtype == np.float64
        _, back, rest = jax.vjp(lambda x, w, h=h: (h(x, n, w)[0], h(x, n, w)[1:]), x, w, has_aux=True)
        assert int(rest[1]) == 4
        assert_agree(back(2.0), jax.tree.map(lambda g: 2 * g, wanted[1]), "value", 1e-6)


def test_no_derivative_is_zero(x64):
    f = pb.bridge(lambda x: jnp.sum(jnp.floor(x)) + jnp.sum(lax.stop_gradient(x)), execute="julia")
    assert_agree(jax.grad(f)(X), np.zeros_like(X), "value", 0)


def test_scaled_losses_of_few_bits_keep_their_small_cotangents():
    """What a loss scale is for: without it this gradient, 2e-8, is zero, and so it must not come first."""
    x, scale = jnp.asarray([1.0], jnp.float16), jnp.asarray(2.0**10, jnp.float16)

    def f(x):
        return jnp.sum(jnp.sin(x * jnp.asarray(2e-4, x.dtype)) * jnp.asarray(1e-4, x.dtype))

    assert float(jax.grad(f)(x)[0]) == 0
    found, wanted = (jax.grad(lambda x, h=h: h(x) * scale)(x) for h in (pb.bridge(f, execute="julia"), f))
    assert float(wanted[0]) > 1e-5
    np.testing.assert_allclose(found, wanted, rtol=1e-2)


def test_a_function_without_a_transpose_still_has_tangents(x64):
    f = lambda x: lax.while_loop(lambda s: s < 50, lambda s: s * x, x)  # noqa: E731
    h = pb.bridge(f, execute="julia")
    assert_agree(jax.jvp(h, (1.5,), (1.0,)), jax.jvp(f, (1.5,), (1.0,)), "value", 1e-12)
    assert_agree(jax.jit(h)(1.5), f(1.5), "value", 1e-12)
