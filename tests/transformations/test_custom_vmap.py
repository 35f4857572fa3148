"""A batch of a bridged function runs the user's rule for batches, of `jax.custom_batching.custom_vmap`.

The rule's values are off by a factor and by the mean of the batch, so that one sees that it ran, and for
which items together.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agreement import assert_agree
from casekit import QUICK
from jax import lax

import pybridge as pb

XS = jnp.asarray(np.linspace(0.2, 1.1, 4), jnp.float32)
X, Y = jnp.float32(0.3), jnp.float32(0.7)
by_mode = pytest.mark.parametrize("execute", ["julia", "auto", "xla"])


@jax.custom_batching.custom_vmap
def product(x, y):
    return jnp.sin(x) * y


@product.def_vmap
def _rule(size, batched, x, y):
    mean = jnp.mean(x) if batched[0] else x
    return 3 * jnp.sin(x) * y + mean, any(batched)


def straight(x, y):
    return jnp.cos(product(x, y)) * 2


def in_a_loop(x, y):
    return lax.scan(lambda c, _: (product(c, y), None), x, None, length=3)[0]


def in_a_branch(x, y):
    return lax.cond(y > 0, lambda: jax.checkpoint(product)(x, y), lambda: x)


def quick(f):
    return jax.jit(f, compiler_options=QUICK)


@by_mode
@pytest.mark.parametrize("f", [straight, in_a_loop, in_a_branch])
def test_values_and_batches(f, execute):
    g = pb.bridge(f, execute=execute)
    assert_agree(quick(g)(X, Y), f(X, Y), "value")
    for of_batch in (jax.vmap(g, (0, None)), quick(jax.vmap(g, (0, None)))):
        assert_agree(of_batch(XS, Y), jax.vmap(f, (0, None))(XS, Y), "the first alone has an axis")
    nested = [jax.vmap(jax.vmap(h, (0, None)), (None, 0)) for h in (g, f)]
    assert_agree(quick(nested[0])(XS, XS), nested[1](XS, XS), "nested")


@by_mode
@pytest.mark.parametrize("f", [straight, in_a_loop])
def test_derivatives_of_batches_are_those_of_the_rule(f, execute):
    def both(h):
        of_batch = jax.vmap(h)
        forward = jax.jvp(of_batch, (XS, XS), (XS, 2 * XS))
        return forward, jax.grad(lambda xs: jnp.sum(of_batch(xs, xs) ** 2))(XS)

    g = pb.bridge(f, execute=execute)
    assert_agree(quick(lambda: both(g))(), both(f), "jvp and gradient")


@by_mode
def test_batches_of_forward_derivatives_are_those_of_the_rule(execute):
    """Of the first order: JAX's second ones have a batch axis too many."""

    def of_batch(h):
        return jax.vmap(lambda x, t: jax.jvp(lambda x: h(x, Y), (x,), (t,)))

    ours, theirs = of_batch(pb.bridge(straight, execute=execute)), of_batch(straight)
    assert_agree(quick(ours)(XS, XS), theirs(XS, XS), "vmap of jvp")


@by_mode
def test_a_gradient_is_that_of_the_function_itself(execute):
    """JAX has none: the rule has no transpose."""

    def plain(x):
        return jnp.cos(jnp.sin(x) * Y) * 2

    g = pb.bridge(lambda x: straight(x, Y), execute=execute)
    assert_agree(jax.grad(g)(X), jax.grad(plain)(X), "gradient")
    assert_agree(jax.grad(jax.grad(g))(X), jax.grad(jax.grad(plain))(X), "second order")
    with pytest.raises(ValueError, match=r"[Ll]inearization"):
        jax.grad(lambda x: straight(x, Y))(X)


def test_a_rule_that_is_no_program_is_jaxs():
    seen = []

    @jax.custom_batching.custom_vmap
    def f(x):
        return x * x

    @f.def_vmap
    def _(size, batched, x):
        jax.debug.callback(lambda n: seen.append(int(n)), size)
        return lax.rng_uniform(0.0, 1.0, ()) * 0 + x**3, True

    g = pb.bridge(f)
    assert_agree(jax.vmap(g)(XS), XS**3, "batch")
    assert_agree(jax.grad(lambda xs: jnp.sum(jax.vmap(lambda x: g(x) * 2)(xs)))(XS), 6 * XS**2, "gradient")
    jax.effects_barrier()
    assert set(seen) == {len(XS)}


def test_keys_are_keys_to_the_rule():
    @jax.custom_batching.custom_vmap
    def draw(key, x):
        return x * jax.random.uniform(key)

    @draw.def_vmap
    def _(size, batched, keys, xs):
        return 2 * xs * jax.random.uniform(keys[0]), True

    keys = jax.random.split(jax.random.key(0), 4)
    assert_agree(jax.vmap(pb.bridge(draw))(keys, XS), jax.vmap(draw)(keys, XS), "batch")


def test_one_item_after_the_other():
    @jax.custom_batching.sequential_vmap
    def f(x):
        return jnp.sin(x) * jnp.sum(x)

    g, batch = pb.bridge(f), jnp.outer(XS, XS)
    assert_agree(jax.vmap(g)(batch), jax.vmap(f)(batch), "batch")


def test_programs_that_are_read_have_the_functions_code():
    assert [eq.op for eq in pb.trace(straight)(X, Y).equations] == ["sin", "mul", "cos", "mul"]
