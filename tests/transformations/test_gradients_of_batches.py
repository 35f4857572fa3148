"""Losses that add up what each item of a batch has: the items' gradients are computed with their values."""

from __future__ import annotations

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
from agreement import assert_agree
from bound_programs import programs_in
from casekit import QUICK
from covering import covering, in_turn, some
from jax import lax

import pybridge as pb
from pybridge.frontend.emission import to_jax
from pybridge.fuzz.making import ENDLESS, at_random, sample
from pybridge.runtime import items


@pytest.fixture
def few(monkeypatch):
    """Batches of a few items are as those of many."""
    monkeypatch.setattr(items, "LEAST_BYTES", 0)


def product(x, y):
    return jnp.sum(jnp.sin(x) * y) * jnp.prod(x)


def loop(x, y):
    """A pendulum of which all steps are kept."""

    def step(state, a):
        q, v = state
        v = v - 0.1 * jnp.sin(q) * a
        return (q + 0.1 * v, v), q

    (q, _), path = lax.scan(step, (x[0], x[1]), y)
    return q * x[2] + jnp.sum(path**2)


def until(x, y):
    """A loop whose trips differ from item to item."""
    return lax.while_loop(lambda c: c[1] < 3, lambda c: (jnp.cos(c[0]) * x[0], c[1] + y[0]), (x[1], y[1]))[0]


def clipped(x, y):
    """Its rule is not linear in the cotangent."""

    @jax.custom_vjp
    def f(x):
        return x**2

    f.defvjp(lambda x: (x**2, x), lambda x, c: (jnp.clip(c, -0.3, 0.3) * x,))
    return jnp.sum(f(x) * y)


def chosen(x, y):
    """An integer of each item decides."""
    return lax.cond(y[0] > 1, lambda x: jnp.sum(x**3), lambda x: x[1] * x[2], x)


FUNCTIONS = (product, loop, clipped, chosen)

LOSSES = {
    "sum": lambda f: lambda x, y: jnp.sum(jax.vmap(f)(x, y)),
    "mean": lambda f: lambda x, y: jnp.mean(jax.vmap(f)(x, y)),
    "squares": lambda f: lambda x, y: jnp.sum((jax.vmap(f)(x, y) - 2) ** 2),
    "weighted": lambda f: lambda x, y: jnp.vdot(jnp.linspace(-3.0, 3.0, len(x)), jax.vmap(f)(x, y)),
    "worst": lambda f: lambda x, y: jnp.max(jax.vmap(f)(x, y)),
    "of one y": lambda f: lambda x, y: jnp.sum(jnp.sin(jax.vmap(f, (0, None))(x, y[0]))),
    "behind": lambda f: lambda x, y: jnp.sum(jax.vmap(f, (1, 0))(x.T, y)),
    "batch of batches": lambda f: (
        lambda x, y: jnp.sum(jax.vmap(jax.vmap(f), (0, None))(jnp.stack([x, x**2]), y) ** 2)
    ),
    "every pair": lambda f: lambda x, y: jnp.mean(jax.vmap(jax.vmap(f, (None, 0)), (0, None))(x, y) * 0.3),
    "jitted": lambda f: lambda x, y: jnp.sum(jax.jit(jax.vmap(f))(x, y)),
    "in a scan": lambda f: (
        lambda x, y: lax.scan(lambda c, _: (c + jnp.sum(jax.vmap(f)(x * c, y)), None), 0.5, None, 3)[0]
    ),
}

WAYS = {
    "by x": lambda h: jax.grad(h),
    "with the value": lambda h: jax.value_and_grad(h),
    "by both": lambda h: jax.grad(h, (0, 1)),
    "of a batch": lambda h: lambda x, y: jax.vmap(jax.grad(h), (0, None))(jnp.stack([x, 2 * x]), y),
    "along": lambda h: lambda x, y: jax.jvp(jax.grad(h), (x, y), (jnp.cos(x), jnp.sin(y)))[1],
    "twice": lambda h: jax.grad(lambda x, y: jnp.sum(jax.grad(h)(x, y) ** 2)),
    "linearized": lambda h: lambda x, y: jax.linearize(lambda x: h(x, y), x)[1](jnp.cos(x)),
}


def arguments(count: int = 5):
    random = np.random.default_rng(count)
    return jnp.asarray(random.normal(size=(count, 3))), jnp.asarray(random.uniform(0.5, 1.5, (count, 3)))


CASES = in_turn([[(f, *pair) for f in FUNCTIONS] for pair in covering(list(LOSSES), list(WAYS))])


@pytest.mark.parametrize(("f", "loss", "way"), CASES, ids=lambda x: getattr(x, "__name__", x))
def test_as_jax(f, loss, way, few, x64):
    x, y = arguments()
    wanted = jax.jit(WAYS[way](LOSSES[loss](f)), compiler_options=QUICK)(x, y)
    of = WAYS[way](LOSSES[loss](pb.bridge(f, execute="julia")))
    for found in (of(x, y), jax.jit(of, compiler_options=QUICK)(x, y)):
        assert_agree(found, wanted, f"{f.__name__} {loss} {way}", 1e-10)


def test_while_loops_against_differences(few, x64):
    x, y = arguments()
    h = LOSSES["squares"](pb.bridge(until, execute="julia"))
    along = jnp.cos(x)
    found = jnp.vdot(jax.grad(h)(x, y), along)
    step = 1e-5
    wanted = (h(x + step * along, y) - h(x - step * along, y)) / (2 * step)
    assert abs(found - wanted) < 1e-7 * (1 + abs(wanted))


def of_wide_numbers(number: int) -> bool:
    """One with a gradient in one pass, unless it has none at all."""
    program = sample(3, number).program
    equations = program.all_equations()
    types = {t.dtype for t in program.input_types} | {v.type.dtype for eq in equations for v in eq.outputs}
    ends = ENDLESS.isdisjoint(eq.op for eq in program.all_equations())
    return ends and types.isdisjoint({"f16", "bf16", "c64", "c128"})


RANDOM = [number for number in range(300) if of_wide_numbers(number)]


@pytest.mark.parametrize("number", some(RANDOM, 12))
def test_random_programs(number, few, x64):
    """The gradient of a sum over the batch is the batch of gradients, to the last bit."""
    program = sample(3, number).program
    active = tuple(i for i, t in enumerate(program.input_types) if t.inexact)
    of_items = [at_random(program, 1000 * number + k).inputs for k in range(3)]
    inputs = [jnp.stack(xs) for xs in zip(*of_items, strict=True)]
    f = to_jax(program)

    def total(*xs):
        return sum(jnp.sum(y, dtype=float) for y in f(*xs) if jnp.issubdtype(y.dtype, jnp.inexact))

    g = pb.bridge(total, execute="julia")
    by_sum = jax.grad(lambda *xs: jnp.sum(jax.vmap(g)(*xs)), active)
    found, wanted = by_sum(*inputs), jax.vmap(jax.grad(g, active))(*inputs)
    assert_agree(found, wanted, f"{program}", 0.0)
    assert len(list(programs_in(jax.make_jaxpr(by_sum)(*inputs).jaxpr))) == 1


@pytest.mark.parametrize("count", [40, 3000])
def test_many_items(count, x64):
    """A few have two passes; of many, gradients are computed block by block, by what they share as well."""
    x, y = arguments(count)
    x, y = x * 0.1, jnp.tile(y, (1, 20))
    for loss, by in (("mean", 0), ("squares", 0), ("of one y", 1), ("squares", 1)):
        of = jax.jit(jax.grad(LOSSES[loss](pb.bridge(loop)), by))
        found, wanted = of(x, y), jax.jit(jax.grad(LOSSES[loss](loop), by))(x, y)
        assert_agree(found, wanted, f"{loss} {by}", 1e-10)
        passes = 1 if count == 3000 else 2
        programs = list(programs_in(jax.make_jaxpr(of)(x, y).jaxpr))
        assert len(programs) == passes


def test_no_path_is_kept(few):
    """But gradients, also by what items have in common, unless these take more than the items' steps."""
    x, y = arguments()
    long = jnp.ones(200)
    weighted = pb.bridge(lambda x, y, w: loop(x, y) * jnp.sum(w), execute="julia")
    losses = (
        (lambda x: LOSSES["mean"](pb.bridge(loop, execute="julia"))(x, y), x),
        (lambda y: jnp.sum(jax.vmap(pb.bridge(loop, execute="julia"), (0, None))(x, y)), y[0]),
        (lambda w: jnp.sum(jax.vmap(weighted, (0, 0, None))(x, y, w)), long),
    )
    programs = [list(programs_in(jax.make_jaxpr(jax.grad(h))(z).jaxpr)) for h, z in losses]
    kept = [sum(t.bytes for t in made[0].output_types) for made in programs]
    # the values and the gradients; of the weights' products, the values and the paths' numbers
    assert kept[:2] == [5 * 4 + x.nbytes, 5 * 4 + 5 * y[0].nbytes] and kept[2] < 5 * long.nbytes
    assert len(programs[2]) == 2


def steep(x):
    return jnp.sum((x * 1e18) ** 2) * 1e3


@pytest.mark.parametrize("scale", [1e-12, 0.5, 1.0])
def test_items_beyond_the_range(scale, few):
    """An item whose gradient is infinite, or would be if it were not for its cotangent."""
    x = jnp.asarray([[0.1, 3.0], [0.2, -0.1]], jnp.float32)
    c = jnp.asarray([scale, 1.0], jnp.float32)
    found, wanted = (
        jax.grad(lambda x, h=h: jnp.vdot(c, jax.vmap(h)(x)))(x)
        for h in (pb.bridge(steep, execute="julia"), steep)
    )
    assert_agree(found, wanted, f"{scale}", 1e-5, unit=0)


def test_an_export_of_any_number_of_items(x64):
    x, y = arguments()
    g = pb.bridge(loop)
    gradient = jax.jit(jax.grad(lambda x: jnp.sum(jax.vmap(g, (0, None))(x, y[0]))))
    shape = jax.export.symbolic_shape("b, 3")
    exported = jax.export.export(gradient)(jax.ShapeDtypeStruct(shape, x.dtype))
    assert_agree(exported.call(x), gradient(x), "gradient", 1e-10)


def test_a_rule_for_batches_is_asked(few):
    @jax.custom_batching.custom_vmap
    def f(x):
        return jnp.sum(x**2)

    @f.def_vmap
    def rule(size, batched, x):
        return 3 * jnp.sum(x**2, axis=1), True

    x, _ = arguments()
    found, wanted = (
        jax.grad(lambda x, h=h: jnp.sum(jax.vmap(h)(x)))(x) for h in (pb.bridge(f, execute="julia"), f)
    )
    assert_agree(found, wanted, "rule", 1e-6)
