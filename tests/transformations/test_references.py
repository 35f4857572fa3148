"""Mutable references that a function makes and uses itself: values and derivatives of first and second order.

Where JAX does not differentiate such a function, finite differences are what is compared with.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agreement import assert_agree
from casekit import computed
from effect_cases import record, recorded
from jax import lax

import pybridge as pb

X = np.array([0.7, 1.2, -0.4])


def written(x):
    ref = jax.new_ref(x)
    ref[...] = jnp.sin(ref[...])
    ref[0] += 2 * x[1]
    return ref[...]


def frozen(x):
    ref = jax.new_ref(x)
    ref[1] = 3 * x[0] * x[1]
    return jax.freeze(ref)


def by_array(x):
    ref, places = jax.new_ref(x * x), jnp.array([0, 2])
    ref[places] = ref[places][::-1] * x[1]
    return ref[...]


def through_a_view(x):
    ref = jax.new_ref(x)
    ref.at[0:2].set(jnp.sin(x[1:]) * x[0])
    return ref[...]


def swapped(x):
    ref = jax.new_ref(jnp.exp(x))
    old = jax.ref.swap(ref, (0,), 5 * x[1])
    return old * ref[...]


def several_types(x):
    count, flag, total = jax.new_ref(0), jax.new_ref(jnp.array(False)), jax.new_ref(jnp.zeros(()))
    for i in range(3):
        count[...] += 2
        flag[...] = jnp.logical_not(flag[...])
        total[...] += jnp.where(flag[...], x[i], -(x[i] ** 2)) * count[...]
    return total[...]


def random_key(x):
    state = jax.new_ref(jax.random.key(0))

    def draw():
        state[...], key = jax.random.split(state[...])
        return jax.random.uniform(key, x.shape, x.dtype)

    return x * draw() - x**2 * draw()


def in_fori_loop(x):
    ref = jax.new_ref(jnp.ones_like(x))

    def step(i, _):
        ref[i] += jnp.sin(x[i]) * ref[i - 1]
        ref[i] = ref[i] + x[i]

    lax.fori_loop(0, 3, step, None)
    return ref[...]


def in_scan(x):
    total = jax.new_ref(jnp.zeros_like(x[0]))

    def step(carry, a):
        total[...] += a * carry
        return carry * a, total[...] ** 2

    last, ys = lax.scan(step, jnp.ones_like(x[0]), x)
    return ys * last + total[...]


def in_while_loop(x):
    ref = jax.new_ref(x[0])

    def step(i):
        ref[...] *= jnp.cos(x[1]) + i
        return i + 1

    lax.while_loop(lambda i: i < 3, step, 0)
    return ref[...] * x


def in_cond(x):
    ref = jax.new_ref(x)

    def positive():
        ref[0] = x[1] ** 2

    def negative():
        ref[1] = x[0] ** 3

    lax.cond(x[0] > 0, positive, negative)
    return ref[...] * x


def in_nested_jit(x):
    ref = jax.new_ref(x)

    @jax.jit
    def scale(y):
        ref[...] = ref[...] * y
        return jnp.sin(y)

    return scale(x) + scale(x**2) + ref[...]


def in_checkpoint(x):
    ref = jax.new_ref(x)

    @jax.checkpoint
    def scale(y):
        ref[...] = jnp.sin(ref[...] * y)
        return y**2

    return scale(x) + ref[...]


def made_in_a_loop(x):
    def step(carry, a):
        ref = jax.new_ref(carry)
        ref[...] *= jnp.sin(a)
        return ref[...] + a, None

    return lax.scan(step, jnp.ones_like(x[0]), x)[0] * x


def made_in_a_checkpoint(x):
    @jax.checkpoint
    def scale(y):
        ref = jax.new_ref(y)
        ref[...] = jnp.sin(ref[...] * y)
        return ref[...]

    return scale(x)


def made_in_a_custom_jvp_function(x):
    @jax.custom_jvp
    def f(y):
        ref = jax.new_ref(y)
        ref[...] = ref[...] ** 3
        return ref[...]

    @f.defjvp
    def rule(primals, tangents):
        ref = jax.new_ref(tangents[0])
        ref[...] *= 3 * primals[0] ** 2
        return f(*primals), ref[...]

    return f(x) * x


def made_in_a_custom_vjp_function(x):
    @jax.custom_vjp
    def f(y):
        ref = jax.new_ref(y)
        ref[...] = ref[...] ** 3
        return ref[...]

    def forward(y):
        ref = jax.new_ref(y)
        ref[...] *= 3 * y
        return f(y), ref[...]

    def backward(slope, cotangent):
        ref = jax.new_ref(cotangent)
        ref[...] *= slope
        return (ref[...],)

    f.defvjp(forward, backward)
    return f(x) * x


def in_run_state(x):
    from jax._src.state.discharge import run_state  # public in pallas alone, which needs no GPU for it

    def body(refs):
        a, b = refs
        b[...] = jnp.sin(a[...]) * b[...]

    return run_state(body)((x, x**2))[1]


def rebound(x):
    """One function that makes a reference, called at two places and in a nested loop."""

    @jax.jit
    def total(x):
        ref = jax.new_ref(jnp.zeros_like(x[0]))

        def step(i, _):
            ref[...] += x[i] ** (i + 1)

        lax.fori_loop(0, 3, step, None)
        return ref[...]

    return lax.scan(lambda c, _: (c * total(x), None), total(2 * x), None, length=2)[0] * x


CASES = (
    *(written, frozen, by_array, through_a_view, swapped, several_types, random_key),
    *(in_fori_loop, in_scan, in_while_loop, in_cond, in_nested_jit, in_checkpoint),
    *(made_in_a_loop, made_in_a_checkpoint, made_in_a_custom_jvp_function, made_in_a_custom_vjp_function),
    *(in_run_state, rebound),
)
NOT_IN_REVERSE = (through_a_view, in_while_loop, in_checkpoint, in_run_state)
"""JAX does not differentiate these in reverse mode."""


def by_jax(f):
    """As JAX can: it runs that custom_jvp function operation by operation alone, the view in `jit` alone."""
    return f if f is made_in_a_custom_jvp_function else jax.jit(f)


each_case = pytest.mark.parametrize("f", CASES, ids=lambda f: f.__name__)


def weighted(f):
    return lambda x: jnp.sum(f(x) * jnp.arange(1.0, 4.0))


def weighted_by_jax(f):
    return weighted(by_jax(f))


V, STEP = np.array([0.3, -1.1, 0.8]), 1e-6


def value_and_gradient(f):
    return lambda x: (f(x), jax.grad(f)(x))


def difference(f):
    """Of f along V, by values alone."""
    return lambda x: (f(x + STEP * V) - f(x - STEP * V)) / (2 * STEP)


@each_case
def test_first_order(x64, f):
    bound = {"while_bound": 3} if f is in_while_loop else {}
    ours = pb.bridge(weighted(f), execute="julia"), pb.bridge(weighted(f), execute="xla", **bound)
    functions = list(map(value_and_gradient, ours))
    in_jax = weighted_by_jax(f)
    if f in NOT_IN_REVERSE:
        *found, value, slope = computed([*functions, in_jax, difference(in_jax)], [(X,)] * 4)
    elif by_jax(f) is f:
        found, (value, wanted) = computed(functions, [(X,)] * 2), value_and_gradient(in_jax)(X)
    else:
        *found, (value, wanted) = computed([*functions, value_and_gradient(in_jax)], [(X,)] * 3)
    for y, gradient in found:
        assert_agree(y, value, "value")
        if f in NOT_IN_REVERSE:
            np.testing.assert_allclose(gradient @ V, slope, rtol=1e-6, atol=1e-6)
        else:
            assert_agree(gradient, wanted, "gradient")


@each_case
def test_second_order(x64, f):
    g = pb.bridge(weighted(f), execute="xla", while_bound=3)  # nothing to compile
    gradient = jax.grad(g)
    functions = [difference(gradient), lambda x: jax.vjp(gradient, x)[1](X)[0]]
    if f is not made_in_a_custom_vjp_function:
        functions += [lambda x: jax.jvp(gradient, (x,), (V,))[1], jax.hessian(g)]
    wanted, backward, *forward = computed(functions, [(X,)] * len(functions))
    np.testing.assert_allclose(backward @ V, wanted @ X, rtol=1e-5, atol=1e-5)
    if forward:
        hvp, hessian = forward
        np.testing.assert_allclose(hvp, wanted, rtol=1e-5, atol=1e-5)
        assert_agree(hvp, hessian @ V, "HVP")


@each_case
def test_vmap(x64, f):
    xs = np.stack([X, -X, 2 * X])
    each = [weighted_by_jax(f)(x) for x in xs]
    assert_agree(jax.vmap(pb.bridge(weighted(f)))(xs), np.stack(each), "vmap")


@each_case
def test_traced(x64, f):
    """What is traced is pure, and so is a Program."""
    program = pb.trace(f)(X)
    assert_agree(program.to_jax()(X), by_jax(f)(X), "Program")


def test_other_engines():
    x = X.astype(np.float32)
    expected = jax.grad(weighted(in_scan))(x)
    for engine in ("jax", "enzyme", "enzyme-jax"):
        if pb.engines.ENGINES[engine].unavailable() is None:
            assert_agree(jax.jit(jax.grad(pb.bridge(weighted(in_scan), engine=engine)))(x), expected, engine)


def test_export_and_comparison():
    x = X.astype(np.float32)
    exported = pb.export(in_fori_loop, ["cpu"])(x)
    assert_agree(exported.call(x), jax.jit(in_fori_loop)(x), "export")
    assert pb.compare(in_fori_loop, x, engines=["transpose", "jax"], repeats=0).agrees()


def test_a_print_of_what_a_reference_holds():
    def f(x):
        ref = jax.new_ref(x[0])

        def step(carry, a):
            ref[...] *= jnp.sin(a)
            record("held", ref[...], ordered=True)
            return carry + ref[...], None

        total, _ = lax.scan(step, 0.0, x)
        record("after", ref[...], ordered=True)
        return total

    x = X.astype(np.float32)
    for way in (lambda f: f(x), lambda f: jax.jit(jax.value_and_grad(f))(x)):
        expected, events = recorded(functools.partial(way, f))
        found, ours = recorded(functools.partial(way, pb.bridge(f)))
        assert_agree(found, expected, "value")
        assert [tag for tag, _ in ours] == ["held", "held", "held", "after"]
        np.testing.assert_allclose([v for _, v in ours], [v for _, v in events], rtol=1e-5)


# What is refused


def reads(ref, x):
    return ref[...] * x


def test_arguments():
    ref = jax.new_ref(jnp.asarray(X))
    for use in (pb.bridge(reads), jax.jit(lambda r, x: pb.bridge(reads)(r, x)), pb.trace(reads)):
        with pytest.raises(
            pb.SideEffectError, match=r"argument is a mutable reference: pass its value, ref\[...\]"
        ):
            use(ref, X)
    assert_agree(ref[...], jnp.asarray(X), "what it holds")


def test_references_from_outside():
    outer = jax.new_ref(jnp.asarray(X))

    def closes_over(x):
        return lax.fori_loop(0, 3, lambda i, c: c + outer[i], x[0])

    for use in (pb.bridge(closes_over), pb.trace(closes_over), jax.jit(pb.bridge(closes_over))):
        with pytest.raises(
            pb.SideEffectError, match=r"outside of the function is used at .*test_references.py:\d+"
        ):
            use(X)

    @jax.jit
    def makes_and_calls(x):
        ref = jax.new_ref(x)
        return pb.bridge(lambda y: ref[...] * y)(x)

    with pytest.raises(
        pb.SideEffectError, match=r"outside of the function is used at .*test_references.py:\d+"
    ):
        makes_and_calls(X)


def returns_a_reference(x):
    return {"held": jax.new_ref(x)}


def test_results():
    for use in (pb.bridge(returns_a_reference), pb.trace(returns_a_reference)):
        with pytest.raises(
            pb.SideEffectError,
            match=r"returned by .*test_references.py:\d+ \(returns_a_reference\): .*jax.freeze",
        ):
            use(X)
