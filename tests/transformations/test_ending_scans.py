"""Scans whose trips do nothing once a condition is false: native code runs them as `while` loops."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agreement import assert_agree

import pybridge as pb
from pybridge.frontend.lowering import lower

X = np.array([0.4, 1.1, -0.7])


def step(x, carry):
    k, y, total = carry
    y = jnp.sin(y + x) * 1.3
    return k + 1, y, total + jnp.sum(y * x)


def ending(x, trips, *, length=12, wrap=lambda f: f, consts=True):
    """`trips` trips, or as many as there are; the last is that in which the numbers' sum is large."""

    def trip(carry, _):
        goes_on = (carry[0] < trips) & (carry[2] < 3)
        return jax.lax.cond(goes_on, functools.partial(step, x if consts else 0.5), lambda c: c, carry), None

    start = jnp.int32(0), jnp.asarray(x) * 2, jnp.zeros_like(x, shape=())
    (_, y, total), _ = jax.lax.scan(wrap(trip), start, None, length=length)
    return total + jnp.sum(y**2)


def nested(x, trips):
    """As equinox's loops with a bound: a scan of scans, each trip of the outer one in a checkpoint."""

    def left(carry):
        return (carry[0] < trips) & (carry[2] < 3)

    def inner(carry, _):
        return jax.lax.cond(left(carry), functools.partial(step, x), lambda c: c, carry), None

    def outer(carry, _):
        run = lambda c: jax.lax.scan(inner, c, None, length=4)[0]  # noqa: E731
        return jax.lax.cond(left(carry), run, lambda c: c, carry), None

    start = jnp.int32(0), jnp.asarray(x) * 2, jnp.zeros_like(x, shape=())
    (_, y, total), _ = jax.lax.scan(jax.checkpoint(outer), start, None, length=4)
    return total + jnp.sum(y**2)


FUNCTIONS = {
    "with constants": ending,
    "without": functools.partial(ending, consts=False),
    "in a checkpoint": functools.partial(ending, wrap=jax.checkpoint),
    "of no trip": functools.partial(ending, length=0),
    "of one trip": functools.partial(ending, length=1),
    "nested": nested,
}


def ops(f, *args, package_rules=False):
    """The primitives of its Program that are not in others."""
    program = lower(jax.make_jaxpr(f)(*args), package_rules=package_rules)
    return [eq.op for eq in program.equations]


@pytest.mark.parametrize("execute", ["auto", "julia", "xla"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives(name, execute, x64):
    f = FUNCTIONS[name]
    g = pb.bridge(f, execute=execute)
    for trips in (0, 3, 50):
        ours = [g(X, trips), *(d(g)(X, trips) for d in (jax.grad, jax.jacfwd, jax.hessian))]
        theirs = [f(X, trips), *(d(f)(X, trips) for d in (jax.grad, jax.jacfwd, jax.hessian))]
        assert_agree(ours, theirs, f"{trips} trips")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_batches(name, x64):
    """Whose items end at trips of their own."""
    f, trips, starts = FUNCTIONS[name], np.array([0, 2, 30, 5]), np.stack([X, -X, 2 * X, 0 * X])
    for d in (lambda f: f, jax.grad):
        ours, theirs = (jax.jit(jax.vmap(d(h)))(starts, trips) for h in (pb.bridge(f), f))
        assert_agree(ours, theirs, "batch")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_program_has_a_loop_that_ends(name):
    f = FUNCTIONS[name]
    assert {"while"} <= {*ops(f, X, 3)} and "scan" not in ops(f, X, 3)
    assert "scan" in ops(f, X, 3, package_rules=True)
    assert "scan" in [eq.op for eq in pb.trace(f)(X, 3).all_equations()]


def other(kind, x):
    """What is no such scan."""

    def grown(c):
        return c[0] + 1, c[1] * x, c[2]

    def same(c):
        return c

    def trip(carry, element):
        k, a, b = carry
        if kind == "exchanging":
            carry = jax.lax.cond(k < 3, grown, lambda c: (c[0], c[2], c[1]), carry)
        elif kind == "working":
            carry = jax.lax.cond(k < 3, grown, lambda c: (c[0], -c[1], c[2]), carry)
        elif kind == "one of three":
            carry = jax.lax.switch(k % 3, [same, grown, lambda c: (c[0] + 2, c[2], c[1])], carry)
        elif kind == "with more around":
            carry = jax.lax.cond(k < 3, grown, same, (k, a + 1, b))
        elif kind == "the other way":
            carry = jax.lax.cond(k < 3, same, grown, (k + 1, a, b))
        else:
            carry = jax.lax.cond(k < 3, grown, same, carry)
        return carry, a if kind == "with results" else None

    xs = jnp.arange(6.0) if kind == "with elements" else None
    (_, a, b), ys = jax.lax.scan(trip, (jnp.int32(0), 2 * x, x**2), xs, length=6)
    return a + 3 * b + (0 if ys is None else jnp.sum(ys))


OTHERS = (
    "exchanging",
    "working",
    "one of three",
    "with more around",
    "the other way",
    "with elements",
    "with results",
)


@pytest.mark.parametrize("kind", OTHERS)
def test_other_scans_remain(kind, x64):
    f = functools.partial(other, kind)
    assert "while" not in ops(f, 1.3)
    g = pb.bridge(f)
    assert_agree([g(1.3), jax.grad(g)(1.3)], [f(1.3), jax.grad(f)(1.3)], kind)
