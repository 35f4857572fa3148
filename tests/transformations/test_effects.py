"""Prints, callbacks and checks in bridged functions happen as often, with the values and in the order that
they have under JAX, whatever is done to the function."""

from __future__ import annotations

import equinox as eqx
import equinox.internal as eqxi
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agreement import assert_agree
from covering import covering
from effect_cases import CASES, EVENTS, NO_REVERSE, ONLY_REVERSE, record, recorded, twice_on_host
from jax import lax
from jax.experimental import checkify
from jax.extend.core import jaxprs_in_params

import pybridge as pb

X = jnp.asarray([0.7, 1.2, -0.4], jnp.float32)
BATCH = jnp.stack([X, 0.3 * X + 0.1, -X])

WAYS = {
    "value": lambda f: f(X),
    "jit": lambda f: jax.jit(f)(X),
    "jvp": lambda f: jax.jvp(f, (X,), (X * X,)),
    "gradient": lambda f: jax.value_and_grad(f)(X),
    "jitted gradient": lambda f: jax.jit(jax.value_and_grad(f))(X),
    "gradient of jit": lambda f: jax.grad(jax.jit(f))(X),
    "gradient of checkpoint": lambda f: jax.grad(jax.checkpoint(f))(X),
    "linearize": lambda f: jax.linearize(f, X)[1](X),
    "vmap": lambda f: jax.vmap(f)(BATCH),
    "vmap of gradient": lambda f: jax.jit(jax.vmap(jax.grad(f)))(BATCH),
    "hessian": lambda f: jax.hessian(f)(X),
    "scan": lambda f: lax.scan(lambda c, x: (c + f(x), None), 0.0, BATCH)[0],
}
FORWARD = ("jvp", "linearize", "hessian")
REVERSE = (
    "gradient",
    "jitted gradient",
    "gradient of jit",
    "gradient of checkpoint",
    "vmap of gradient",
    "hessian",
)


def possible(name: str, way: str) -> bool:
    return not (name in ONLY_REVERSE and way in FORWARD) and not (name in NO_REVERSE and way in REVERSE)


def assert_same(name: str, way: str, **options) -> None:
    f, run = CASES[name], WAYS[way]
    expected, events = recorded(lambda: run(f))
    found, ours = recorded(lambda: run(pb.bridge(f, **options)))
    assert_agree(found, expected, f"{name}, {way}")
    if "ordered" not in name:  # JAX promises no order of the others
        events, ours = sorted(events, key=_key), sorted(ours, key=_key)
    assert [tag for tag, *_ in ours] == [tag for tag, *_ in events]
    for (tag, *values), (_, *wanted) in zip(ours, events, strict=True):
        for x, y in zip(values, wanted, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-4, err_msg=f"{name}, {way}: {tag}")


def _key(event: tuple) -> tuple:
    tag, *values = event
    return tag, [np.round(value.ravel(), 3).tolist() for value in values]


@pytest.mark.parametrize(
    ("name", "way"), dict.fromkeys([*covering(CASES, WAYS, possible, least=1), ("ordered", "gradient")])
)
def test_as_under_jax(name, way):
    """What JAX binds is the same for every engine; this one needs no compilation by Julia."""
    assert_same(name, way, engine="jax")


@pytest.mark.parametrize(
    ("name", "way"),
    covering(CASES, ["value", "jit", "jitted gradient", "vmap", "hessian"], possible, least=1),
)
def test_with_programs_in_julia(name, way):
    assert_same(name, way, execute="julia")


@pytest.mark.parametrize(
    "name", ["between", "ordered_scan", "cond", "checkpoint", "custom_jvp_rule", "pure_callback"]
)
def test_with_programs_in_xla(name):
    assert_same(name, "vmap of gradient", execute="xla")


# Prints


def printing(x):
    def step(carry, a):
        jax.debug.print("carry {c:.4f} at {a}", c=carry, a=a, ordered=True)
        return carry * a, None

    last, _ = lax.scan(step, 1.0, x)
    jax.debug.print("last {}", last, ordered=True)
    return last


@pytest.mark.parametrize("way", ["value", "jitted gradient"])
def test_printed_text(way, capfd):
    texts = []
    for f in (printing, pb.bridge(printing)):
        WAYS[way](f)
        jax.effects_barrier()
        texts.append(capfd.readouterr().out)
    assert texts[0] == texts[1]
    assert texts[0].splitlines() == [
        *("carry 1.0000 at 0.699999988079071", "carry 0.7000 at 1.2000000476837158"),
        *("carry 0.8400 at -0.4000000059604645", "last -0.3360000252723694"),
    ]


def segments(jaxpr) -> int:
    """The Programs that a jaxpr applies."""
    return sum(
        (eqn.primitive.name == "julia_call") + sum(map(segments, jaxprs_in_params(eqn.params)))
        for eqn in jaxpr.eqns
    )


@pytest.mark.parametrize(
    ("name", "count"), [("between", 1), ("unused", 1), ("ordered", 1), ("scan", 2), ("pure_callback", 2)]
)
def test_a_print_cuts_no_program(name, count):
    """Only what is computed of a callback's result has to wait for it."""
    assert segments(jax.make_jaxpr(pb.bridge(CASES[name]))(X).jaxpr) == count


def test_results_that_a_batch_shares_stay_single():
    """Else what all items share would be printed for each."""
    g = pb.bridge(lambda x, y: (x * y, jnp.sin(y), jnp.ones(2)))
    jaxpr = jax.make_jaxpr(jax.vmap(g, (0, None), (0, None, None)))(X, X[0])
    assert [v.aval.shape for v in jaxpr.jaxpr.outvars] == [(3,), (), (2,)]
    assert_agree(jax.vmap(g, (0, None))(X, X[0])[1], jnp.full(3, jnp.sin(X[0])), "broadcast")


# Callbacks with results


def differentiated(x):
    return jnp.sum(twice_on_host(jnp.sin(x)) * x)


@pytest.mark.parametrize("way", ["jvp", "gradient", "jitted gradient", "hessian"])
def test_pure_callback_has_no_derivative(way):
    messages = []
    for f in (differentiated, pb.bridge(differentiated)):
        with pytest.raises(ValueError, match="Pure callbacks do not support JVP") as caught:
            WAYS[way](f)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    assert_agree(pb.bridge(differentiated)(X), differentiated(X), "value")


def test_pure_callback_without_a_vmap_method():
    def f(x):
        return jax.pure_callback(np.sin, jax.ShapeDtypeStruct((), jnp.float32), x) * 2

    for function in (f, pb.bridge(f)):
        with pytest.raises(NotImplementedError, match="vmap_method"):
            jax.vmap(function)(X)


def test_foreign_function():
    """LAPACK's Cholesky factorization, called as users call functions of their own through XLA's FFI; LAPACK
    counts columns first, and so its upper triangle is the lower one."""
    jnp.linalg.cholesky(jnp.eye(2)).block_until_ready()  # JAX registers LAPACK's functions when it lowers one

    def f(x):
        like = (jax.ShapeDtypeStruct((3, 3), jnp.float32), jax.ShapeDtypeStruct((), jnp.int32))
        factor, _ = jax.ffi.ffi_call("lapack_spotrf_ffi", like)(
            jnp.outer(x, x) + 3 * jnp.eye(3), uplo=np.uint8(ord("U"))
        )
        return jnp.tril(factor) * 2

    assert_agree(
        jax.jit(pb.bridge(f))(X), 2 * jnp.linalg.cholesky(jnp.outer(X, X) + 3 * jnp.eye(3)), "factor"
    )


# Checks that raise


def checked(x):
    x = eqx.error_if(x, jnp.any(x > 5), "too large")

    def step(carry, a):
        carry = eqx.error_if(carry * jnp.sin(a), a < -5, "too small")
        return carry, carry

    last, ys = lax.scan(step, 1.0, x)
    return eqxi.branched_error_if(last + jnp.sum(ys), x[0] == 2, 1, ["not this", "this one"])


@pytest.mark.parametrize("way", ["value", "jitted gradient", "vmap of gradient", "hessian"])
def test_error_if(way):
    assert_agree(WAYS[way](pb.bridge(checked)), WAYS[way](checked), way)


@pytest.mark.parametrize(
    ("x", "reason"), [([9.0, 0, 0], "too large"), ([0, -9.0, 0], "too small"), ([2.0, 0, 0], "this one")]
)
@pytest.mark.parametrize(
    "transformed", [lambda f: f, jax.value_and_grad, lambda f: lambda x: jax.vmap(f)(x[None])]
)
def test_error_if_raises(x, reason, transformed):
    with pytest.raises(RuntimeError, match=reason):
        jax.block_until_ready(eqx.filter_jit(transformed(pb.bridge(checked)))(jnp.asarray(x, jnp.float32)))


def logarithm(x):
    y = jnp.log(x)
    checkify.check(jnp.all(x > 0), "{} is not positive", x[0])
    return jnp.sum(y * x)


P = jnp.asarray([1.0, 2.0, 3.0], jnp.float32)


@pytest.mark.parametrize("way", ["value", "jit", "gradient", "vmap"])
def test_checkify_of_a_bridged_function(way):
    def errors(f, x):
        transformed = {
            "value": f,
            "jit": jax.jit(f),
            "gradient": jax.grad(f),
            "vmap": lambda x: jax.vmap(f)(jnp.stack([P, x])),
        }[way]
        error, value = checkify.checkify(transformed)(x)
        return error.get(), value

    for x in (P, -P):
        (reason, value), (wanted, expected) = errors(pb.bridge(logarithm), x), errors(logarithm, x)
        assert reason == wanted and ((wanted is None) == (x is P))
        assert_agree(value, expected, way)


@pytest.mark.parametrize("errors", [checkify.user_checks, checkify.all_checks])
def test_bridge_of_a_checkified_function(errors):
    f = checkify.checkify(logarithm, errors=errors)
    g = pb.bridge(f)
    for x in (P, -P):
        error, value = jax.jit(g)(x)
        wanted, expected = f(x)
        assert error.get() == wanted.get()
        assert_agree(value, expected, "value")
        assert_agree(jax.grad(lambda x: g(x)[1])(x), jax.grad(lambda x: f(x)[1])(x), "gradient")


def out_of_bounds(x):
    return x[jnp.sum(x).astype(int)] ** 2


def invalid_in_a_loop(x):
    return lax.scan(lambda carry, a: (jnp.log(carry - a), None), 1.0, x)[0]


@pytest.mark.parametrize("f", [logarithm, out_of_bounds, invalid_in_a_loop], ids=lambda f: f.__name__)
@pytest.mark.parametrize("transformed", [lambda f: f, jax.jit, jax.grad], ids=["value", "jit", "gradient"])
def test_automatic_checks_of_checkify(f, transformed):
    for x in (P, -P):
        for errors in (checkify.float_checks, checkify.index_checks, checkify.all_checks):
            wanted = checkify.checkify(transformed(f), errors=errors)(x)[0].get()
            assert checkify.checkify(transformed(pb.bridge(f)), errors=errors)(x)[0].get() == wanted


def invalid(x):
    y = jnp.sin(x) - 2
    return jnp.sum(jnp.log(y))


@pytest.mark.parametrize("execute", ["xla", "julia"])
@pytest.mark.parametrize("way", ["value", "jit", "gradient", "jvp", "vmap"])
def test_debug_nans(way, execute):
    with jax.debug_nans(True):
        with pytest.raises(FloatingPointError, match=r"\(nan\) encountered in log"):
            WAYS[way](invalid)
        line = "" if way == "vmap" else r" at .*test_effects.py:\d+ \(invalid\)"
        with pytest.raises(FloatingPointError, match=r"\(nan\) encountered in log" + line):
            WAYS[way](pb.bridge(invalid, execute=execute))
        valid = pb.bridge(lambda x: invalid(x + 1j).real, execute=execute)
        assert_agree(WAYS[way](valid), WAYS[way](lambda x: invalid(x + 1j).real), way)
    assert np.isnan(pb.bridge(invalid, execute=execute)(X))


def test_debug_infs():
    g = pb.bridge(lambda x: 1 / x)
    with jax.debug_infs(True), pytest.raises(FloatingPointError, match=r"\(inf\) encountered in div"):
        g(0 * X)


# What is refused


def writes(x):
    jax.experimental.io_callback(lambda v: None, None, x)
    return jnp.sum(x)


def writes_in_a_loop(x):
    def step(carry, a):
        jax.debug.print("{}", a)
        return carry + jax.experimental.io_callback(lambda v: v, a, a, ordered=True), None

    return lax.scan(step, 0.0, x)[0]


@pytest.mark.parametrize("f", [writes, writes_in_a_loop])
def test_io_callback_is_refused(f):
    for use in (pb.bridge(f), jax.jit(jax.grad(pb.bridge(f)))):
        with pytest.raises(
            pb.SideEffectError, match=r"io_callback at .*test_effects.py:\d+ .*jax.debug.callback"
        ):
            use(X)


@pytest.mark.parametrize("name", ["between", "pure_callback", "scan"])
def test_a_program_is_pure(name):
    with pytest.raises(pb.SideEffectError, match=r"effect_cases.py:\d+ .*pybridge.bridge takes the function"):
        pb.trace(CASES[name])(X)


@pytest.mark.parametrize("name", ["custom_jvp_rule", "custom_vjp_backward"])
def test_a_program_is_without_rules_that_are_not_pure(name):
    program = pb.trace(CASES[name])(X)
    assert_agree(program.to_jax()(X), CASES[name](X), "value")
    with pytest.raises(pb.NotDifferentiable, match=r"effect_cases.py:\d+ .*pybridge.bridge takes"):
        program.vjp()


@pytest.mark.parametrize("platforms", [["cpu"], ["cuda", "tpu"]])
@pytest.mark.parametrize("name", ["between", "pure_callback", "scan"])
def test_an_export_calls_nothing_of_this_process(name, platforms):
    with pytest.raises(pb.SideEffectError, match=r"_callback at .*effect_cases.py:\d+ .*export"):
        pb.export(CASES[name], platforms)(X)


def test_comparison():
    EVENTS.clear()
    result = pb.compare(CASES["between"], X, engines=["transpose", "jax"], repeats=0)
    jax.effects_barrier()
    assert result.agrees()
    assert {tag for tag, *_ in EVENTS} == {"y", "z"}


def test_enzyme_jax():
    """First order and under jit, which is what enzyme-ad can do; it cannot where a segment has more results
    than arguments."""
    unavailable = pb.engines.ENGINES["enzyme-jax"].unavailable()
    if unavailable is not None:
        pytest.skip(str(unavailable))

    def f(x, w):
        y = jnp.sin(x) * w
        record("y", y)
        return jnp.sum(y * x)

    expected, events = recorded(lambda: jax.jit(jax.grad(f))(X, X))
    found, ours = recorded(lambda: jax.jit(jax.grad(pb.bridge(f, engine="enzyme-jax")))(X, X))
    assert_agree(found, expected, "gradient")
    assert len(events) == len(ours) == 1
