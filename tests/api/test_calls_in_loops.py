"""A bridged function that is called in a loop of JAX's: short Programs are XLA's operations there."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agreement import assert_agree
from jax import lax

import pybridge as pb

X = jnp.asarray(np.random.default_rng(48).uniform(-1, 1, 12), jnp.float32)


def valley(x):
    return jnp.sum(jnp.exp(x[:-1]) * (x[1:] - x[:-1] ** 2) ** 2 + jnp.sin(x[1:]))


def large(x):
    return jnp.sum(jnp.sin(x[:, None] * jnp.arange(1000.0)) ** 2)


def in_fori_loop(step):
    return lambda x: lax.fori_loop(0, 5, lambda _, x: step(x), x)


def in_while_loop(step):
    return lambda x: lax.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, step(c[1])), (0, x))[1]


def in_condition(step):
    return lambda x: lax.while_loop(lambda x: jnp.sum(step(x)) < 9, lambda x: x + 1, x)


def in_scan(step):
    return lambda x: lax.scan(lambda x, _: (step(x), x[0]), x, length=5)


def in_map(step):
    return lambda x: lax.map(step, jnp.stack([x, 2 * x]))


def in_a_jit_in_a_scan(step):
    return in_scan(jax.jit(lambda x: step(x)))


LOOPS = [in_fori_loop, in_while_loop, in_condition, in_scan, in_map, in_a_jit_in_a_scan]


def descent(f):
    return lambda x: x - 0.01 * jax.grad(f)(x)


def kernels(f, *args):
    return jax.jit(f).lower(*args).as_text().count("custom_call @pybridge")


@pytest.mark.parametrize("loop", LOOPS)
def test_short_programs_are_operations(loop):
    ours = loop(descent(pb.bridge(valley)))
    assert kernels(ours, X) == 0
    assert_agree(jax.jit(ours)(X), jax.jit(loop(descent(valley)))(X), loop.__name__)


@pytest.mark.parametrize("loop", [in_fori_loop, in_scan])
def test_large_ones_are_kernels_and_so_are_those_that_the_user_wants(loop):
    assert kernels(loop(descent(pb.bridge(large))), X) > 0
    assert kernels(loop(descent(pb.bridge(valley, execute="julia"))), X) > 0


def test_elsewhere_they_are_kernels_before_and_after():
    f = pb.bridge(valley)
    assert kernels(jax.grad(f), X) > 0
    assert kernels(in_scan(descent(f)), X) == 0
    assert kernels(lambda x: in_scan(descent(f))(x)[0] + jax.grad(f)(x), X) > 0
    assert kernels(jax.grad(f), X) > 0


def test_a_batch_of_short_ones():
    batch = jnp.stack([X, X + 1])
    ours, theirs = (jax.vmap(in_scan(descent(f))) for f in (pb.bridge(valley), valley))
    assert kernels(ours, batch) == 0
    assert_agree(jax.jit(ours)(batch), jax.jit(theirs)(batch), "batch")


@pytest.mark.parametrize("transform", [jax.grad, lambda f: lambda x: jax.jvp(f, (x,), (jnp.ones_like(x),))])
def test_derivatives_of_the_loop(transform):
    def total(f):
        return lambda x: jnp.sum(in_scan(descent(f))(x)[1])

    assert_agree(jax.jit(transform(total(pb.bridge(valley))))(X), transform(total(valley))(X), "derivative")


def test_a_loop_that_python_runs():
    with jax.disable_jit():
        ours = in_scan(descent(pb.bridge(valley)))(X)
    assert_agree(ours, in_scan(descent(valley))(X), "without jit")


def test_a_bridged_function_within_a_bridged_loop_is_part_of_it():
    inner = pb.bridge(valley)
    outer = pb.bridge(in_scan(descent(inner)))
    assert kernels(outer, X) == 1
    assert_agree(jax.jit(outer)(X), in_scan(descent(valley))(X), "bridged loop")


def test_it_is_told(capsys):
    jax.jit(in_scan(descent(pb.bridge(valley, explain=True)))).lower(X)
    assert "a short Program in a loop" in capsys.readouterr().err
