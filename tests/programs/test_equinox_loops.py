"""equinox's loops, whose primitives are functions of JAX where nothing is batched: they run as Programs.

A loop writes into a buffer, some trips under a condition; the items of a batch end at different trips.
"""

from __future__ import annotations

import functools
import itertools

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


def forwards(f, order=1):
    """The derivative by the start, of that order, in forward mode, of all items of a batch."""
    for _ in range(order):
        f = functools.partial(lambda f, x, n: jax.jvp(lambda x: f(x, n), (x,), (jnp.ones_like(x),))[1], f)
    return jax.jit(lambda: jax.vmap(f)(STARTS, ENDS))()


@pytest.mark.parametrize("kind", KINDS)
def test_forward_mode(kind, x64):
    """Which equinox's checkpointed loop has not; the others are the same function."""
    g, f = both(kind, "auto")
    _, f = both("lax", "auto") if kind == "checkpointed" else (g, f)
    assert_agree(forwards(g), forwards(f), "batch of JVPs")


@pytest.mark.parametrize("execute", ["auto", "julia"])
@pytest.mark.parametrize("buffers", [True, False])
def test_any_order_through_checkpointed_loops(execute, buffers, x64):
    """Twice backwards and then forwards, against forward mode of JAX's own loop."""
    g, _ = both("checkpointed", execute, buffers=buffers)
    _, f = both("lax", execute, buffers=buffers)
    assert_agree(forwards(g, 2), forwards(f, 2), "forward mode, twice")
    second = jax.vmap(jax.grad(jax.grad(g)))(STARTS, ENDS)
    assert_agree(second, forwards(f, 2), "reverse mode, twice")
    third = jax.vmap(lambda x, n: jax.jvp(lambda x: jax.grad(jax.grad(g))(x, n), (x,), (1.0,))[1])
    assert_agree(third(STARTS, ENDS), forwards(f, 3), "the third derivative")


def test_loops_in_loops(x64):
    """A loop of both kinds in another, its number of trips known when it begins."""

    def nested(x, n, outer, inner):
        def trip(state):
            i, y = state
            turn = (lambda s: s[0] <= i), lambda s: (s[0] + 1, jnp.sin(s[1]) * x)
            _, y = eqxi.while_loop(*turn, (jnp.int32(0), y), max_steps=MOST, kind=inner)
            return i + 1, y + x

        return eqxi.while_loop(lambda s: s[0] < n, trip, (jnp.int32(0), x), max_steps=6, kind=outer)[1]

    for outer, inner in itertools.product(("checkpointed", "lax"), repeat=2):
        g = pb.bridge(functools.partial(nested, outer=outer, inner=inner))
        ours = [jax.grad(g)(STARTS[1], 5), jax.grad(jax.grad(g))(STARTS[1], 5)]
        first = jax.jacfwd(functools.partial(nested, outer="lax", inner="lax"))
        theirs = [first(STARTS[1], 5), jax.jacfwd(first)(STARTS[1], 5)]
        assert_agree(ours, theirs, f"{inner} in {outer}")


def test_the_package_s_rule_can_be_kept(x64):
    f = functools.partial(written, "checkpointed")
    kept = pb.bridge(f, package_rules=True)
    assert "package_rules=True" in repr(kept)
    assert_agree(jax.grad(kept)(STARTS[1], ENDS[1]), jax.grad(f)(STARTS[1], ENDS[1]), "gradient")
    for execute, rules in (("auto", True), ("xla", False)):
        with pytest.raises(TypeError, match="custom_vjp"):
            forwards(pb.bridge(f, execute=execute, package_rules=rules))


def checkpointed(size, most):
    """The equation of a loop of so many numbers, by their names in a jaxpr."""

    def f(x):
        return eqxi.while_loop(
            lambda y: jnp.sum(y) < 9, lambda y: y * x, x, max_steps=most, kind="checkpointed"
        )

    found = jax.make_jaxpr(f)(jax.ShapeDtypeStruct((size,), "float32")).jaxpr.eqns
    return next(eqn for eqn in found if eqn.primitive.name == "custom_vjp_call")


def test_which_loops_are_differentiated_as_they_are():
    """Where checkpoints save memory that there may not be, they stay."""
    for most in (1, 50, 1 << 16):
        (loop,) = packages.checkpointed_loop(checkpointed(3, most)).jaxpr.eqns
        assert loop.primitive.name == "while"
    assert packages.checkpointed_loop(checkpointed(1 << 14, 1 << 13)) is None

    @jax.custom_vjp
    def own(x):
        return jax.lax.while_loop(lambda y: y < 9, lambda y: y * x, x)

    own.defvjp(lambda x: (own(x), x), lambda x, ct: (2 * ct,))
    (eqn,) = jax.make_jaxpr(own)(2.0).jaxpr.eqns
    assert packages.checkpointed_loop(eqn) is None
    assert jax.grad(pb.bridge(own))(2.0) == 2


def test_a_loop_is_one_program():
    """With the package's rules trips of a bounded loop are left out for a batch as a whole: that is XLA's."""

    def found(kind, **options):
        f = pb.bridge(functools.partial(written, kind), **options)
        return primitives_in(jax.make_jaxpr(f)(STARTS[1], ENDS[1]).jaxpr)

    for kind in KINDS:
        assert "julia_call" in found(kind) and found(kind).isdisjoint({"unvmap_any", "scan", "while"})
    assert {"scan", "unvmap_any"} <= found("bounded", package_rules=True)


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
