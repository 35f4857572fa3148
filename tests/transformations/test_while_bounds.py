"""Bounds on the trips of while loops, which XLA needs in reverse mode: kept, not kept, and not needed.

The references are the same loops as scans over as many trips.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agreement import assert_agree
from casekit import computed
from exports import custom_calls
from jax import lax
from jax.sharding import AxisType, PartitionSpec

import pybridge as pb
from pybridge.runtime import native

TRIPS = 11
X = 1.1


def grown(x):
    """Its loop runs 11 times at 1.1, and how often depends on x."""

    def going(state):
        return (state[0] < 10) & (state[1].sum() < 100) | (state[0] < TRIPS)

    return lax.while_loop(going, lambda s: (s[0] + 1, x * s[1]), (0, jnp.ones((2,), x.dtype)))[1].sum()


def trips(n, step, start):
    return lax.fori_loop(0, n, lambda _, s: step(s), start)


def settled(x, going=lambda i, change: (i < 50) & (change > 1e-13)):
    """A fixed point, with the counter that such loops have; it takes some 30 trips."""

    def step(s):
        i, y, _ = s
        z = 0.4 * jnp.cos(y) + 0.1 * x
        return i + 1, z, jnp.max(jnp.abs(z - y))

    return jnp.sum(lax.while_loop(lambda s: going(s[0], s[2]), step, (0, x, 1.0))[1] * x)


def settled_by_scan(x):
    return jnp.sum(trips(60, lambda y: 0.4 * jnp.cos(y) + 0.1 * x, x) * x)


def root(x):
    return lax.while_loop(lambda s: jnp.abs(s * s - x) > 1e-12, lambda s: (s + x / s) / 2, x)


# Bounds that are not kept


DERIVATIVES = {
    "grad": (jax.grad, 22 * X**10),
    "hessian": (jax.hessian, 220 * X**9),
    "grad of grad": (lambda f: jax.grad(jax.grad(f)), 220 * X**9),
    "jacfwd of grad of grad": (lambda f: jax.jacfwd(jax.grad(jax.grad(f))), 1980 * X**8),
}
each_derivative = pytest.mark.parametrize("name", DERIVATIVES)


@each_derivative
@pytest.mark.parametrize("execute", ["auto", "julia"])
def test_native_code_uses_no_bound(execute, name, x64):
    derivative, expected = DERIVATIVES[name]
    g = derivative(pb.bridge(grown, execute=execute, while_bound=2))
    np.testing.assert_allclose(g(X), expected, rtol=1e-12)
    np.testing.assert_allclose(jax.jit(g)(X), expected, rtol=1e-12)


@each_derivative
def test_under_xla_a_bound_that_is_too_small_gives_nan_and_an_error(name, x64):
    derivative, expected = DERIVATIVES[name]
    short, enough = (derivative(pb.bridge(grown, execute="xla", while_bound=n)) for n in (TRIPS - 1, TRIPS))
    in_jit = computed([short, enough], [(X,)] * 2)
    assert np.isnan(in_jit[0])
    if name in ("grad", "grad of grad"):  # the others have a vmap, in which there are no values to see
        with pytest.raises(pb.NotDifferentiable, match="grown runs longer than its while_bound"):
            short(X)
    for found in (enough(X), in_jit[1]):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_values_and_forward_mode_need_no_bound(x64):
    g = pb.bridge(grown, execute="xla", while_bound=2)
    for found in (jax.jvp(g, (X,), (1.0,)), jax.jit(lambda x: jax.jvp(g, (x,), (1.0,)))(X)):
        assert_agree(found, (np.asarray(2 * X**11), np.asarray(22 * X**10)), "jvp")


def test_nor_do_loops_of_which_nothing_is_to_be_kept(x64):
    def doubled(x):
        return jnp.sum(lax.while_loop(lambda s: jnp.sum(s) < 40, lambda s: 2 * s, x))

    x = jnp.arange(3.0)
    for options in ({}, {"while_bound": 1}):
        g = pb.bridge(doubled, execute="xla", **options)
        assert_agree(jax.grad(g)(x), np.full(3, 16.0), "grad")

    def counted(x):
        return lax.fori_loop(0, 5, lambda _, y: x * y, x)

    found = jax.grad(pb.bridge(counted, execute="xla", while_bound=2))(X)
    np.testing.assert_allclose(found, 6 * X**5, rtol=1e-12)


@pytest.mark.parametrize("execute", ["xla", "auto"])
def test_a_nan_of_the_function_itself_is_none_of_the_bound(execute):
    bound = 20 if execute == "xla" else 2
    g = pb.bridge(lambda x: grown(x) * jnp.log(-x), execute=execute, while_bound=bound)
    assert np.isnan(jax.grad(g)(np.float32(X)))


def test_a_batch_in_which_one_loop_runs_longer(x64):
    g = pb.bridge(root, execute="xla", while_bound=8)
    x = jnp.asarray([2.0, 1e6])
    assert np.isnan(jax.vmap(jax.grad(g))(x)[1])
    assert_agree(jax.vmap(jax.grad(g))(x[:1]), 0.5 / jnp.sqrt(x[:1]), "within the bound", 1e-8)


# Bounds that are kept


def while_in_scan(x):
    return lax.scan(lambda c, y: (c * jnp.cos(root(y)), c), x[0], x)[0]


def scan_in_while(x):
    def step(s):
        return lax.scan(lambda c, y: (c + jnp.sin(y + c) / 9 + 0.3, None), s, x)[0]

    return lax.while_loop(lambda s: s < 4.0, step, x[0])


def while_in_while(x):
    def step(s):
        return s + root(1 + s[0]) * (1.5 + jnp.cos(s) / 9)

    return jnp.sum(lax.while_loop(lambda s: jnp.max(s) < 40.0, step, x))


def while_in_cond(x):
    return lax.cond(x[0] > 0, lambda x: root(x[1]), lambda x: x[0], x)


@jax.custom_jvp
def half_a_sine(x):
    return jnp.sin(x) / 2


half_a_sine.defjvp(lambda x, t: (half_a_sine(*x), jnp.cos(x[0]) * t[0] / 2))


def with_a_rule(x):
    def step(s):
        return s + half_a_sine(s) * x / 9 + 0.5

    return jnp.sum(lax.while_loop(lambda s: jnp.max(s) < 9.0, step, x))


V, STEP = np.array([0.3, -1.1, 0.8]), 1e-6


def difference(f):
    """Of f along V, by values alone."""
    return lambda x: (f(x + STEP * V) - f(x - STEP * V)) / (2 * STEP)


@pytest.mark.parametrize(
    "f", [while_in_scan, scan_in_while, while_in_while, while_in_cond, with_a_rule], ids=lambda f: f.__name__
)
def test_loops_in_loops(f, x64):
    x = jnp.asarray([0.4, 2.0, 7.0])
    enough, short = (pb.bridge(f, execute="xla", while_bound=n) for n in (60, 1))
    native = pb.bridge(f, execute="julia")
    of_native = [jax.grad(native), jax.hessian(native)]
    functions = [jax.grad(enough), jax.hessian(enough), *of_native, jax.grad(short), difference(enough)]
    gradient, hessian, *by_native, of_short, slope = computed(functions, [(x,)] * 6)
    assert_agree(gradient, by_native[0], "gradient", 1e-9)
    assert_agree(hessian, by_native[1], "hessian", 1e-7)
    np.testing.assert_allclose(gradient @ V, slope, rtol=1e-6, atol=1e-6)
    assert np.isnan(of_short).any()


def test_a_counter_in_the_condition_is_a_bound(x64):
    def derivatives(f):
        gradient = jax.grad(f)
        return lambda x: {
            "gradient": gradient(x),
            "hessian": jax.hessian(f)(x),
            "reverse over reverse": jax.grad(lambda x: jnp.vdot(gradient(x), V))(x),
            "jvp": jax.jvp(f, (x,), (V,)),
            "forward over forward": jax.jvp(lambda x: jax.jvp(f, (x,), (V,))[1], (x,), (V,))[1],
            "reverse over forward": jax.grad(lambda x: jax.jvp(f, (x,), (V,))[1])(x),
        }

    x = jnp.asarray([0.3, 1.2, -0.4])
    bridged = [pb.bridge(settled, execute="xla", **options) for options in ({}, {"while_bound": 10**12})]
    *found, expected = computed(list(map(derivatives, (*bridged, settled_by_scan))), [(x,)] * 3)
    for ours in found:
        for what, wanted in expected.items():
            assert_agree(ours[what], wanted, what, 1e-11)


def test_items_of_a_batch_run_as_often_as_they_need(x64):
    x = jnp.asarray([0.04, 2.0, 1e6, 3.0])
    f = pb.bridge(root, execute="xla", while_bound=30)
    expected = 0.5 / jnp.sqrt(x)
    assert_agree(jax.vmap(jax.grad(f))(x), expected, "vmap of grad", 1e-8)
    assert_agree(jax.grad(lambda x: jnp.sum(jax.vmap(f)(x)))(x), expected, "grad of vmap", 1e-8)
    second = jax.vmap(jax.grad(jax.grad(f)))(x)
    assert_agree(second * x**1.5, -0.25 + 0 * x, "vmap of grad of grad", 1e-6)
    twice = jax.vmap(jax.vmap(jax.grad(f)))(x.reshape(2, 2))
    assert_agree(twice, expected.reshape(2, 2), "vmap of vmap", 1e-8)


def test_in_shard_map(x64):
    mesh = jax.make_mesh((1,), ("i",), axis_types=(AxisType.Auto,))
    g = jax.vmap(jax.hessian(pb.bridge(root, execute="xla", while_bound=30)))
    over = PartitionSpec("i")
    x = jnp.asarray([0.25, 2.0])
    found = jax.jit(jax.shard_map(g, mesh=mesh, in_specs=over, out_specs=over))(x)
    assert_agree(found, -0.25 * x**-1.5, "hessian", 1e-8)


# What they cost


def test_a_bound_is_memory_under_xla_and_nothing_natively(x64):
    def memory(execute, bound):
        f = jax.jit(jax.grad(pb.bridge(root, execute=execute, while_bound=bound))).lower(2.0).compile()
        np.testing.assert_allclose(f(2.0), 0.5 / np.sqrt(2), rtol=1e-8)
        return native.memory(f)

    bound = 10**6
    assert memory("auto", bound) < 10_000
    assert bound <= memory("xla", bound) < 100 * bound
    assert memory("xla", 20) < 10_000


def test_more_trips_than_memory_has_room_for_are_refused(x64):
    g = pb.bridge(root, execute="xla", while_bound=2**40)
    with pytest.raises(pb.UnsupportedPrimitive, match=f"at most {2**40}.*while_bound=N"):
        jax.grad(g)(2.0)


# Other platforms


@pytest.mark.parametrize("options", [{"while_bound": 60}, {}], ids=["bound", "counter"])
def test_exports(options, x64):
    """One Program: at this place native code without a bound, in the export operations with one."""
    x = jnp.asarray([0.3, 1.2, -0.4])
    going = (lambda i, change: change > 1e-13) if options else (lambda i, change: (i < 50) & (change > 1e-13))
    gradient = jax.jit(jax.grad(pb.bridge(lambda x: settled(x, going), **options)))
    assert_agree(gradient(x), jax.grad(settled_by_scan)(x), "here", 1e-11)
    exported = jax.export.export(gradient, platforms=("cpu", "cuda"))(x)
    assert not custom_calls(exported)
    assert_agree(exported.call(x), jax.grad(settled_by_scan)(x), "exported", 1e-11)
    size = jax.ShapeDtypeStruct(jax.export.symbolic_shape("n"), x.dtype)
    for_any = jax.export.export(gradient, platforms=("cpu", "cuda", "tpu"))(size)
    assert_agree(for_any.call(x), jax.grad(settled_by_scan)(x), "of any size", 1e-11)


# Texts


def test_a_text_without_the_bound_has_none(x64):
    p = pb.trace(root)(2.0).vjp()
    before = p.text.replace("], bound=none", "]")
    assert before != p.text == pb.parse(before).text
    q = pb.trace(root, while_bound=7)(2.0).vjp()
    assert "], bound=7, cond" in q.text and pb.parse(q.text) == q != p
