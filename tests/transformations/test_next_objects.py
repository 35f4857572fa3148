"""JAX's own objects in the place of custom_jvp, custom_vjp and checkpoint, which settings turn on.

A function that is made with them is, bridged, the function that is made without: of that JAX has the
derivatives in every version.
"""

from __future__ import annotations

import contextlib
import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agreement import assert_agree
from casekit import computed
from jax import lax
from jax.ad_checkpoint import checkpoint_name
from jax.custom_derivatives import SymbolicZero
from test_policies import EXACT, PLACES, POLICIES, W
from test_policies import X as ROWS

import pybridge as pb

RNG = np.random.default_rng(71)
X = jnp.asarray(RNG.uniform(0.2, 1, (3,)), jnp.float32)
V = jnp.asarray(RNG.uniform(-1, 1, (3,)), jnp.float32)

SINCE = {
    "jax_custom_vjp3": (0, 10),
    "jax_remat3": (0, 10, 2),
    "jax_scan3": (0, 10, 2),
    "jax_custom_jvp3": (0, 11),
}
"""The settings, and the JAX that has them first."""


def needs(setting):
    if jax.__version_info__ < SINCE[setting]:
        pytest.skip(f"{setting} is there from JAX {'.'.join(map(str, SINCE[setting]))} on")


@contextlib.contextmanager
def switched_on(*names):
    there = [name for name in names if jax.__version_info__ >= SINCE[name]]
    before = {name: jax.config.values[name] for name in there}
    assert not any(before.values())
    for name in there:
        jax.config.update(name, True)
    try:
        yield
    finally:
        for name, value in before.items():
            jax.config.update(name, value)


def own_jvp():
    """All rules here are wrong by a factor, so that one sees that they ran."""

    @functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
    def power(x, n):
        return x**n

    @power.defjvp
    def _(n, primals, tangents):
        return power(*primals, n), 3 * n * power(*primals, n - 1) * tangents[0]

    @jax.custom_jvp
    def product(x, y):
        return x * jnp.sin(y), 2 * y

    @functools.partial(product.defjvp, symbolic_zeros=True)
    def _(primals, tangents):
        (x, y), (dx, dy) = primals, tangents
        terms = [] if isinstance(dx, SymbolicZero) else [3 * dx * jnp.sin(y)]
        terms += [] if isinstance(dy, SymbolicZero) else [x * jnp.cos(y) * dy]
        return product(x, y), (sum(terms, jnp.zeros_like(x)), dy)

    @jax.custom_jvp
    def parts(x, y):
        return {"z": x * y, "n": jnp.int32(2)}

    parts.defjvps(lambda dx, out, x, y: {"z": 3 * dx * y, "n": np.zeros((), jax.dtypes.float0)}, None)

    def f(x):
        first, second = product(x, power(x, 3))
        constant, _ = product(x, jnp.ones_like(x))
        found = parts(first, second)
        return found["z"] * found["n"] + constant

    return f


def own_vjp():
    @functools.partial(jax.custom_vjp, nondiff_argnums=(0, 2))
    def apply(f, x, n):
        return f(x) * n

    apply.defvjp(
        lambda f, x, n: (apply(f, x, n), {"x": x}),
        lambda f, n, residuals, ct: (3 * n * jax.vjp(f, residuals["x"])[1](ct)[0],),
    )

    @jax.custom_vjp
    def product(x, y):
        return x * y, x + y

    def backward(residuals, cotangents):
        x, y = residuals
        first, second = (0.0 if isinstance(c, SymbolicZero) else c for c in cotangents)
        return 3 * first * y + second, 3 * first * x + second

    product.defvjp(
        lambda x, y: ((x.value * y.value, x.value + y.value), (x.value, y.value)),
        backward,
        symbolic_zeros=True,
    )

    @jax.custom_vjp
    def integers(x, n):
        return x * n, n + 1

    integers.defvjp(lambda x, n: (integers(x, n), n), lambda n, cts: (3 * n * cts[0], None))

    def f(x):
        first, _ = product(apply(jnp.sin, x, 2), x)
        y, n = integers(first, jnp.int32(2))
        return y * n

    return f


def optimized(optimize_remat=True):
    @jax.custom_vjp
    def f(x):
        return jnp.sin(x) * x

    f.defvjp(
        lambda x: (f(x), (jnp.cos(x), x)),
        lambda r, ct: (3 * r[0] * r[1] * ct,),
        optimize_remat=optimize_remat,
    )
    return f


def closing_over():
    """Over a value that is being traced, which the rule does without: it runs when that is over."""

    def f(x):
        nothing = 0 * lax.stop_gradient(jnp.tanh(x))

        @jax.custom_vjp
        def inner(y):
            return jnp.sin(y) + nothing

        inner.defvjp(lambda y: (jnp.sin(y), y), lambda y, ct: (3 * jnp.cos(y) * ct,))
        return inner(x * x)

    return f


def checkpoints():
    def layer(x, scale):
        product = checkpoint_name(jnp.tanh(x) * scale, "product")
        return jnp.sin(product) + product

    kept = jax.checkpoint(layer, policy=POLICIES.save_only_these_names("product"))
    static = jax.checkpoint(lambda x, n: jnp.cos(x * n), static_argnums=(1,), prevent_cse=False)
    return jax.checkpoint(lambda x: static(kept(kept(x, 2.0), x), 3))


def everywhere(make):
    """The function in all that a function may be in."""

    def made():
        f = make()

        def everything(x):
            def step(c, k):
                return jax.checkpoint(lambda c: f(c) * k)(c), jnp.sum(c)

            return {
                "plain": f(x),
                "scan": lax.scan(step, x, jnp.arange(1.0, 3.0, dtype=x.dtype)),
                "vmap": jax.vmap(f)(jnp.outer(x, x)),
                "checkpoint": jax.checkpoint(lambda x: f(jnp.sin(x)), policy=POLICIES.dots_saveable)(x),
                "cond": lax.cond(x[0] > 0, lambda: f(2 * x), lambda: x),
                "jit": jax.jit(f)(jnp.cos(x)),
            }

        return everything

    return made


FORWARD = {"custom_jvp": own_jvp, "checkpoint": checkpoints}
REVERSE = {"custom_vjp": own_vjp, "optimize_remat": optimized, "closure": closing_over}
AS_BEFORE = {"optimize_remat": functools.partial(optimized, False)}  # which JAX differentiates twice
OBJECTS = ("jax_custom_vjp3", "jax_custom_jvp3", "jax_remat3")


def loss(f):
    return lambda x: sum(jnp.sum(jnp.tanh(y)) for y in jax.tree.leaves(f(x)))


def backwards(f):
    gradient = jax.grad(loss(f))
    return {
        "value": jax.jit(f)(X),
        "gradient": gradient(X),
        "second": jax.grad(lambda x: jnp.vdot(gradient(x), V))(X),
        "batch": jax.vmap(gradient)(jnp.stack([X, V])),
    }


def forwards(f):
    return {
        "jvp": jax.jvp(f, (X,), (V,))[1],
        "second": jax.jvp(jax.grad(loss(f)), (X,), (V,))[1],
    }


NOT_YET = {
    "closure": "until JAX 0.11 its custom_vjp object closes over no traced value",
    "checkpoint": "until JAX 0.11 vmap has no rule for its name objects",
}


def skip_what_was_not_yet(name):
    if jax.__version_info__ < (0, 11) and name in NOT_YET:
        pytest.skip(NOT_YET[name])


@pytest.mark.parametrize("name", FORWARD | REVERSE)
def test_derivatives(name):
    if name == "closure":
        skip_what_was_not_yet(name)
    make = (FORWARD | REVERSE)[name]

    def derivatives(f, made):
        return lambda: backwards(f) | ({"forward": forwards(made)} if name in FORWARD else {})

    (expected,) = computed([derivatives(AS_BEFORE.get(name, make)(), make())], [()])
    with switched_on(*OBJECTS):
        g = pb.bridge(make(), execute="xla")  # Julia's kernels are in the tests below
        (found,) = computed([derivatives(g, g)], [()])
    for part, value in expected.items():
        assert_agree(found[part], value, part)


@pytest.mark.parametrize("name", FORWARD | REVERSE)
def test_gradients_wherever_it_is(name):
    skip_what_was_not_yet(name)
    make = everywhere((FORWARD | REVERSE)[name])

    def both(f):
        return lambda x: (f(x), jax.grad(loss(f))(x))

    (expected,) = computed([both(make())], [(X,)])
    with switched_on(*OBJECTS):
        ours = [both(pb.bridge(make(), execute=execute)) for execute in ("julia", "xla")]
        for found in computed(ours, [(X,)] * 2):
            assert_agree(found, expected, name)


@pytest.mark.parametrize("setting", OBJECTS)
def test_one_kind_of_object_alone(setting):
    needs(setting)
    make = {"jax_custom_vjp3": own_vjp, "jax_custom_jvp3": own_jvp, "jax_remat3": checkpoints}[setting]
    (expected,) = computed([jax.value_and_grad(loss(make()))], [(X,)])
    with switched_on(setting):
        jaxpr = jax.make_jaxpr(make())(X)
        assert any(eqn.primitive.name == "call_hi_primitive" for eqn in jaxpr.eqns)
        (found,) = computed([jax.value_and_grad(loss(pb.bridge(make())))], [(X,)])
        assert_agree(found, expected, setting)


@pytest.mark.parametrize("around", [lambda f: f, jax.checkpoint], ids=["plain", "checkpoint"])
def test_a_forward_rule_for_residuals_alone(around):
    needs("jax_custom_vjp3")
    with switched_on("jax_custom_vjp3"):
        f = jax.custom_vjp(jnp.sin)
        f.defvjp(lambda x: (2 * jnp.sin(x), x), lambda x, ct: (3 * jnp.cos(x) * ct,), optimize_remat=True)
        wanted = jax.value_and_grad(around(f))(0.7)
        assert_agree(jax.value_and_grad(pb.bridge(around(f)))(0.7), wanted, "value and gradient")


# Rules that are given in other ways, which JAX has for these objects alone.


def cube(x):
    return x**3


def with_logs():
    f = jax.custom_vjp(cube)
    f.defvjp_with_logs(lambda x: (f(x), x), lambda x, ct: ((9 * x**2 * ct,), {"seen": ct}))
    return f


def with_accumulators():
    def backward(x, ct, total):
        total.accum(9 * x**2 * ct)

    f = jax.custom_vjp(cube)
    f.defvjp_with_accums(lambda x: (f(x), x), backward)
    return f


def with_remat_rules():
    f = jax.custom_vjp(cube)
    f.defremat(lambda x: (f(x), x), lambda x, _: (f(x), x**2), lambda square, ct: (9 * square * ct,))
    return f


def repeated(f):
    return lambda x: lax.scan(lambda c, _: (f(c), c), x, None, 2)


@pytest.mark.parametrize("make", [with_logs, with_accumulators, with_remat_rules])
def test_other_ways_to_give_a_rule(make):
    name = {"with_logs": "defvjp_with_logs", "with_accumulators": "defvjp_with_accums"}.get(
        make.__name__, "defremat"
    )
    if not hasattr(jax.custom_vjp, name):
        pytest.skip(f"JAX {jax.__version__} has no {name}")
    with switched_on(*OBJECTS):
        for place in (lambda f: f, jax.checkpoint, repeated):
            f, g = place(make()), pb.bridge(place(make()))
            assert_agree(jax.value_and_grad(loss(g))(X), jax.value_and_grad(loss(f))(X), name)


@pytest.mark.parametrize("place", ["value", "backward rule", "checkpoint"])
def test_callbacks_in_them_run_as_often(place):
    seen = []

    def run(make):
        seen.clear()
        gradient = jax.grad(loss(make()))(X)
        jax.effects_barrier()
        return gradient, len(seen)

    def made():
        def tell(x, where):
            if where == place:
                jax.debug.callback(seen.append, x[0])
            return x

        f = jax.custom_vjp(lambda x: tell(jnp.sin(x), "value"))
        f.defvjp(lambda x: (f(x), x), lambda x, ct: (3 * jnp.cos(x) * tell(ct, "backward rule"),))
        return jax.checkpoint(lambda x: tell(jnp.cos(x), "checkpoint")) if place == "checkpoint" else f

    with switched_on(*OBJECTS):
        expected, times = run(made)
        found, here = run(lambda: pb.bridge(made()))
    assert_agree(found, expected, place)
    assert here == times > 0


# Differentiated before they are traced.


@pytest.mark.parametrize("name", FORWARD | REVERSE)
def test_bridged_derivatives(name):
    if name == "closure":
        skip_what_was_not_yet(name)
    make = (FORWARD | REVERSE)[name]
    expected = jax.grad(loss(make()))(X)
    with switched_on(*OBJECTS):
        f = make()
        assert_agree(pb.bridge(jax.grad(loss(f)))(X), expected, "gradient")
        if name in FORWARD or jax.__version_info__ >= (0, 11):  # which linearizes the other objects, too
            linear = pb.bridge(lambda v: jax.linearize(loss(f), X)[1](v))
            assert_agree(jax.linear_transpose(linear, X)(jnp.float32(1))[0], expected, "transpose")

        def pushed(x, v):
            return jax.jvp(loss(f), (x,), (v,))[1]

        if name in FORWARD:
            assert_agree(pb.bridge(pushed)(X, V), jnp.vdot(expected, V), "tangent")
        elif jax.__version_info__ >= (0, 12) or name != "custom_vjp":  # which JAX refused
            back = jax.linear_transpose(lambda v: pb.bridge(pushed)(X, v), V)
            assert_agree(back(jnp.float32(1))[0], expected, "transposed tangent")
            with pytest.raises(pb.NotDifferentiable, match="reverse"):
                jax.grad(pb.bridge(pushed), 1)(X, V)


# Loops that carry their state in mutable references.


def loops(x):
    def step(c, k):
        inner, _ = lax.scan(lambda e, j: (jnp.sin(e * j) + c[0], None), k, x)
        return (c[0] * k + c[1], inner), (c[0] + k, k)

    last, _ = lax.scan(step, (x[0], x[1]), x, reverse=True, unroll=2)
    return last, lax.scan(lambda c, _: (2 * c, c), x, None, 3)


def test_loops():
    """JAX itself neither reverses them nor has their gradients."""
    needs("jax_scan3")
    batch = jnp.stack([X, V])

    def derivatives(f):
        return lambda x, v: {
            "value": f(x),
            "gradient": jax.grad(loss(f))(x),
            "jvp": jax.jvp(f, (x,), (v,)),
            "vmap": jax.vmap(jax.grad(loss(f)))(batch),
        }

    (expected,) = computed([derivatives(loops)], [(X, V)])
    with switched_on("jax_scan3"):
        assert "Scan3" in str(jax.make_jaxpr(loops)(X))
        ours = [derivatives(pb.bridge(loops, execute=execute)) for execute in ("julia", "xla")]
        for found in computed(ours, [(X, V)] * 2):
            for what, wanted in expected.items():
                assert_agree(found[what], wanted, what)
        assert_agree(pb.bridge(loops)(X), expected["value"], "eager")


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("policy", EXACT)
def test_policies_mean_the_same(policy, place):
    needs("jax_remat3")
    if "vmap" in place and jax.__version_info__ < (0, 11):
        pytest.skip(NOT_YET["checkpoint"])

    def program():
        f = PLACES[place](EXACT[policy])
        text = str(pb.trace(lambda w, x: f(w, x))(W, ROWS))
        return re.sub("  # .*", "", text)  # without source lines

    expected = program()
    with switched_on("jax_remat3"):
        assert program() == expected
