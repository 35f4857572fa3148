"""`check`: derivatives that are not those of the value are found, and nothing else is called wrong."""

from __future__ import annotations

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import DIFFERENTIABLE
from covering import FULL

import pybridge as pb

X = np.random.default_rng(0).uniform(0.2, 1.2, (3, 4)).astype(np.float32)


@jax.custom_vjp
def skewed(x):
    return jnp.sin(x)


def skewed_backward(x, ct):
    return (1.001 * jnp.cos(x) * ct,)


skewed.defvjp(lambda x: (jnp.sin(x), x), skewed_backward)


@jax.custom_jvp
def doubled(x):
    return jnp.exp(x)


@doubled.defjvp
def doubled_tangent(primals, tangents):
    return jnp.exp(primals[0]), 2 * tangents[0]


@jax.custom_vjp
def right(x):
    return jnp.sin(x)


right.defvjp(lambda x: (jnp.sin(x), x), lambda x, ct: (jnp.cos(x) * ct,))


def line(f) -> str:
    return f"test_check.py:{inspect.getsourcelines(f)[1]} ({f.__name__})"


@pytest.mark.parametrize(
    "f",
    [
        lambda x: jnp.linalg.norm(x) ** 2,
        lambda x: jnp.sum(jnp.where(x == 0, 1.0, jnp.sin(x) / x)),
        lambda x: jnp.sum(jnp.sqrt(x**4)),
    ],
)
def test_a_derivative_that_is_nan_is_wrong_where_the_function_is_smooth(f):
    """Also where all of it is NaN, and the slope is 0."""
    found = pb.check(f, np.zeros(3, np.float32))
    assert not found.ok
    assert {x.mode for x in found.wrong} >= {"VJP"}


@pytest.mark.parametrize("f", [lambda x: jnp.linalg.norm(x), lambda x: jnp.sum(jnp.sqrt(jnp.abs(x)))])
def test_a_derivative_that_is_nan_is_not_wrong_where_there_is_none(f):
    assert not pb.check(f, np.zeros(3, np.float32)).wrong


def test_a_wrong_rule_is_found_with_its_line_and_argument():
    found = pb.check(lambda tree, y: {"s": skewed(tree["a"]) * y, "t": y}, {"a": X}, X)
    assert not found.ok
    assert [(f.argument, f.result) for f in found.wrong] == [("tree['a']", "result['s']")]
    (rule,) = found.rules
    assert rule.endswith(line(skewed_backward)) and rule in str(found)
    assert "1 wrong" in repr(found) and "wrong" in found._repr_html_()


@pytest.mark.parametrize(
    "f",
    [
        lambda x: right(doubled(x)),
        lambda x: jax.jit(doubled)(x),
        lambda x: jax.lax.scan(lambda c, _: (doubled(c), None), 0.1 * x, length=2)[0],
        lambda x: jax.lax.cond(x.sum() > 0, doubled, jnp.sin, x),
        lambda x: jax.checkpoint(doubled)(x),
        pb.bridge(lambda x: doubled(x)),
    ],
    ids=["call", "jit", "scan", "cond", "checkpoint", "bridge"],
)
def test_the_rule_that_is_wrong_is_told_from_those_that_are_right(f):
    found = pb.check(f, X)
    assert {f.state for f in found.findings} == {"wrong"}
    (rule,) = found.rules
    assert "doubled" in rule


def test_a_gradient_that_is_stopped():
    found = pb.check(lambda x: x * jax.lax.stop_gradient(x), X)
    assert not found.ok and found.rules[0].startswith("stop_gradient, called at ")


def test_a_rule_of_a_julia_function():
    """Its tangents are right, so that the two modes do not belong together either."""
    source = "g(x) = sum(x .^ 2); t((x,), (v,)) = 2 * sum(x .* v); skewed((x,), c) = (2.1 .* x .* c,)"
    with jax.enable_x64(True):
        g = pb.julia_function("g", source=source, jvp="t", vjp="skewed")
        found = pb.check(lambda x: g(x) ** 2, X.astype(np.float64))
        compared = pb.compare(g, X.astype(np.float64), engines=[], repeats=0)
    assert [(f.mode, f.state) for f in found.findings] == [("JVP", "right"), ("VJP", "wrong")]
    assert found.rules[0].startswith("the Julia function g, called at ")
    assert compared.derivative == "wrong" and not compared["jax"].disagreements


def test_a_candidate_that_is_wrong_in_one_element_of_many():
    @jax.custom_vjp
    def f(x):
        return x**2

    f.defvjp(lambda x: (x**2, x), lambda x, ct: ((2 * x * ct).at[0].multiply(1.1),))
    assert not pb.check(f, np.linspace(1, 2, 10_000)).ok


def kinked(x):
    return jax.nn.relu(x) + jnp.abs(x)


@pytest.mark.parametrize(
    ("f", "args"),
    [
        (right, (X,)),
        (kinked, (np.array([0.0, 1.0, -1.0, 0.0], np.float32),)),
        (jnp.max, (np.array([1.0, 2.0, 2.0, 2.0], np.float32),)),
        (jnp.sort, (np.array([1.0, 2.0, 2.0, 0.0], np.float32),)),
        (jnp.linalg.norm, (np.zeros(3, np.float32),)),
        (jnp.log, (np.zeros(3, np.float32),)),
        (jnp.sqrt, (np.array([-1.0, 0.0, 1.0, 2.0], np.float32),)),
        (lambda x: jnp.clip(x, 0.0, 1.0), (np.array([0.0, 1.0, 0.5], np.float32),)),
        (lambda x: x * jnp.floor(x), (np.array([1.0, 2.5], np.float32),)),
        (lambda x, i: x[i] * 2.0, (X, np.array([2, 0]))),
        (lambda key, x: x * jax.random.normal(key, x.shape), (jax.random.key(0), X)),
        (lambda key, x: x * jax.random.normal(key, x.shape), (jax.random.PRNGKey(0), X)),
        (
            lambda key, x: jnp.where(jax.random.bernoulli(key, 0.5, x.shape), x, 0) / 0.5,
            (jax.random.key(1), X),
        ),
        (lambda x: jnp.tanh(x.astype(jnp.float32)), (X,)),
        (lambda x: jax.lax.mul(jnp.sin(x), jnp.ones(x.shape, jnp.float32)), (X,)),
        (lambda x: ((1e6 + x) - 1e6) ** 2, (X,)),
        (lambda x: jnp.sin(1e5 * x), (X,)),
        (lambda x: jnp.stack([1e6 * x, 1e-6 * x]), (X,)),
        (lambda z: jnp.abs(z) ** 2 + jnp.exp(1j * z).imag, ((X + 1j * X[::-1]).astype(np.complex64),)),
        (lambda x: jax.lax.while_loop(lambda s: jnp.sum(s) < 50, lambda s: 1.5 * s, x), (X,)),
    ],
)
def test_what_is_right_is_not_called_wrong(f, args):
    found = pb.check(f, *args)
    assert found.ok, found
    assert pb.compare(f, *args, engines=[], repeats=0).derivative != "wrong"


def test_where_nothing_can_be_said_nothing_is_called_wrong():
    coarse = lambda x: jnp.tanh(x.astype(jnp.bfloat16))  # noqa: E731
    for f, args in (
        (jnp.sqrt, (-X,)),
        (lambda x: jnp.sin(1e12 * x), (X,)),
        (coarse, (X,)),
    ):
        found = pb.check(f, *args)
        assert not found.wrong and not found.ok and "not checked" in str(found)
    gamma = pb.check(lambda key, a: jax.random.gamma(key, a), jax.random.key(0), X)
    assert not gamma.wrong and any("distribution" in note for note in gamma.notes)


def test_rtol():
    assert not pb.check(skewed, X).ok and pb.check(skewed, X, rtol=1e-2).ok


def test_what_cannot_be_checked():
    with pytest.raises(pb.NotDifferentiable):
        pb.check(lambda n: n + 1, 3)
    with pytest.raises(pb.NotDifferentiable, match="no derivative to check"):
        pb.check(lambda x: jax.pure_callback(np.sin, x, x), X)


HEALTHY = [
    case
    for case in DIFFERENTIABLE
    if case.name.endswith("/f32")
    and case.reverse
    and "custom" not in case.name
    and "stop_grad" not in case.name
][:: 4 if FULL else 8]


@pytest.mark.parametrize("case", HEALTHY, ids=str)
def test_functions_of_other_tests_are_not_called_wrong(case):
    inputs = case.inputs()

    def f(*active):
        given = dict(zip(case.active, active, strict=True))
        return case.f(*(given.get(i, x) for i, x in enumerate(inputs)))

    try:
        found = pb.check(f, *(inputs[i] for i in case.active))
    except pb.NotDifferentiable:  # by JAX
        return
    assert not found.wrong, found
