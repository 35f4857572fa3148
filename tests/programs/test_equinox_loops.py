"""equinox's loops, whose primitives are functions of JAX where nothing is batched: they run as Programs.

A loop writes into a buffer, some trips under a condition; the items of a batch end at different trips.
"""

from __future__ import annotations

import functools

import equinox as eqx
import equinox.internal as eqxi
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agreement import assert_agree
from bound_programs import primitives_in
from covering import FULL, covering
from equinox.internal._loop.common import _maybe_set, select_if_vmap_p

import pybridge as pb
from pybridge.frontend.adapter import packages
from pybridge.frontend.emission import to_jax

MOST = 24
ENDS = np.array([3, 11, MOST, 0], np.int32)
STARTS = np.array([0.3, 0.8, 1.2, -0.4])

KINDS, EXECUTES = ("lax", "checkpointed", "bounded"), ("auto", "julia", "xla")
by_kind_and_execute = pytest.mark.parametrize(("kind", "execute"), covering(KINDS, EXECUTES, least=1))


def written(kind, start, end, *, buffers=True):
    """The sum of what a loop of `end` trips wrote, each number weighted by its place."""

    def trip(state):
        k, y, ys = state
        y = y + 0.1 * jnp.sin(start * y)
        ys = ys.at[k].set(y, pred=y > 0.3) if buffers else ys.at[k].set(y)
        return k + 1, y, ys

    _, y, ys = eqxi.while_loop(
        lambda state: state[0] < end,
        trip,
        (jnp.int32(0), 0.5 * start, jnp.zeros(MOST)),
        max_steps=MOST,
        kind=kind,
        buffers=(lambda state: state[2]) if buffers else None,
    )
    return jnp.sum(ys * jnp.arange(MOST)) + y**2


def both(kind, execute, **options):
    f = functools.partial(written, kind, **options)
    return pb.bridge(f, execute=execute), f


@by_kind_and_execute
@pytest.mark.parametrize("buffers", [True, False] if FULL else [True])
def test_values_and_their_batches(kind, execute, buffers, x64):
    g, f = both(kind, execute, buffers=buffers)
    assert_agree(g(STARTS[1], ENDS[1]), f(STARTS[1], ENDS[1]), "value")
    assert_agree(jax.jit(jax.vmap(g))(STARTS, ENDS), jax.vmap(f)(STARTS, ENDS), "batch")
    of_one, theirs = jax.vmap(g, (None, 0)), jax.vmap(f, (None, 0))
    assert_agree(of_one(STARTS[2], ENDS), theirs(STARTS[2], ENDS), "a batch of ends")


@by_kind_and_execute
def test_gradients_and_their_batches(kind, execute, x64):
    """Those of the loop that JAX refuses to differentiate are compared with another kind's."""
    g, _ = both(kind, execute)
    _, f = both("checkpointed" if kind == "lax" else kind, execute)
    ours, theirs = jax.grad(g), jax.grad(f)
    assert_agree(ours(STARTS[1], ENDS[1]), theirs(STARTS[1], ENDS[1]), "gradient")
    assert_agree(jax.jit(jax.vmap(ours))(STARTS, ENDS), jax.vmap(theirs)(STARTS, ENDS), "batch of gradients")

    def mean(h):
        return lambda start: jnp.mean(jax.vmap(h, (None, 0))(start, jnp.asarray(ENDS)))

    inside = pb.bridge(mean(functools.partial(written, kind)), execute=execute)
    assert_agree(jax.grad(inside)(STARTS[1]), jax.grad(mean(f))(STARTS[1]), "gradient of a batch")


@pytest.mark.parametrize("kind", ["lax", "bounded"])
def test_forward_mode(kind, x64):
    def of_batch(h):
        return jax.vmap(lambda x, n: jax.jvp(lambda x: h(x, n), (x,), (jnp.ones_like(x),)))(STARTS, ENDS)

    g, f = both(kind, "auto")
    assert_agree(jax.jit(lambda: of_batch(g))(), of_batch(f), "batch of JVPs")


def test_a_loop_is_one_program():
    """Of a bounded loop trips are left out, for a batch as a whole: that is XLA's."""

    found = {
        kind: primitives_in(jax.make_jaxpr(both(kind, "auto")[0])(STARTS[1], ENDS[1]).jaxpr) for kind in KINDS
    }
    for kind in ("lax", "checkpointed"):
        assert "julia_call" in found[kind] and "unvmap_any" not in found[kind]
    assert {"scan", "unvmap_any"} <= found["bounded"]


@pytest.mark.parametrize("execute", ["auto", "xla"])
def test_an_error_around_a_loop_is_raised_by_the_items_that_have_it(execute, x64):
    """A batch has one condition, so that Python is called for an error alone."""

    def checked(start, end):
        start = eqx.error_if(start, start > 2, "it starts too far out")
        return written("checkpointed", start, end)

    g, batch = pb.bridge(checked, execute=execute), (STARTS, jnp.asarray(ENDS))
    assert_agree(jax.vmap(g)(*batch), jax.vmap(checked)(*batch), "batch")
    assert_agree(jax.vmap(jax.grad(g))(*batch), jax.vmap(jax.grad(checked))(*batch), "batch of gradients")
    with pytest.raises(Exception, match="too far out"):
        jax.vmap(g)(10 * STARTS, ENDS)


def in_place(holds, xs, x):
    return _maybe_set(holds, xs, x, jnp.int32(1), kwargs={}, makes_false_steps=True)


HOLDS, NUMBERS, COUNTS = (
    np.array([True, False]),
    np.array([0.5, -1.5], np.float32),
    np.arange(6).reshape(3, 2),
)


@pytest.mark.parametrize(
    ("f", "args"),
    [
        (eqxi.unvmap_any, [HOLDS]),
        (eqxi.unvmap_all, [HOLDS]),
        (eqxi.unvmap_max, [COUNTS]),
        (eqxi.nonbatchable, [NUMBERS]),
        (select_if_vmap_p.bind, [HOLDS[1], NUMBERS, -NUMBERS]),
        (in_place, [HOLDS[1], NUMBERS, NUMBERS[0]]),
        (jax.vmap(in_place, (0, None, 0)), [HOLDS, NUMBERS, 2 * NUMBERS]),
    ],
)
def test_definitions_are_what_the_package_computes(f, args):
    """A version that changes what one of them means has another value here."""
    found = jax.make_jaxpr(f)(*args)
    assert any(map(packages.has_definition, found.jaxpr.eqns))
    definition = to_jax(pb.trace(f)(*args))(*args)
    assert_agree(definition, jax.tree.leaves(jax.jit(f)(*args)), "definition")
