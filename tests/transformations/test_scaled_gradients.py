"""Multiples of numbers with one-pass gradients: those of JAX where scaling a gradient would give others."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agreement import assert_agree
from bound_programs import programs_in
from casekit import QUICK
from covering import covering
from jax import lax
from jax.custom_derivatives import SymbolicZero

import pybridge as pb

X = np.array([0.1, 3.0, -0.5], np.float32)
MODES = ["julia", "auto", "xla"]


def with_rule(backward):
    @jax.custom_vjp
    def f(x):
        return x

    f.defvjp(lambda x: (x, x), lambda x, ct: (backward(x, ct),))
    return f


def normalized(x, g):
    return g / jnp.linalg.norm(g)


RULES = {
    "clipped": lambda x, g: jnp.clip(g, -1, 1),
    "normalized": normalized,
    "rounded": lambda x, g: jnp.round(g * 2) / 2,
    "signs": lambda x, g: jnp.sign(g),
    "positive": lambda x, g: jnp.where(g > 0, g, 0.0),
    "decayed": lambda x, g: g + 0.1 * x,
    "constant": lambda x, g: jnp.ones_like(x),
    "half": lambda x, g: (g * 1e-4).astype(jnp.float16).astype(jnp.float32),
    "masked": lambda x, g: jnp.where(x > 0, g, 0.0),  # linear
}

WAYS = {
    "multiple": lambda f: jax.grad(lambda x: 10 * f(x)),
    "fraction": lambda f: jax.grad(lambda x: -0.25 * f(x)),
    "of a batch": lambda f: jax.vmap(jax.grad(lambda x: 10 * f(x))),
    "of a mean": lambda f: jax.grad(lambda x: 5 * jnp.mean(jax.vmap(f)(x))),
    "in a scan": lambda f: jax.grad(lambda x: 3 * lax.scan(lambda c, y: (c + f(y), None), 0.0, x)[0]),
    "jitted inside": lambda f: jax.grad(lambda x: 10 * jax.jit(f)(x)),
    "pulled back": lambda f: lambda x: jax.vmap(jax.vjp(f, x)[1])(jnp.array([0.5, 20.0])),
    "of a batch of a scan": lambda f: jax.vmap(
        jax.grad(lambda x: 4 * lax.scan(lambda c, y: (c + f(y), None), 0.0, x[None])[0])
    ),
}
IN_BATCHES = ("of a batch", "of a mean", "in a scan", "of a batch of a scan")


@pytest.mark.parametrize(("rule", "way"), covering(list(RULES), list(WAYS), least=2))
def test_rules_see_the_cotangent(rule, way):
    f = with_rule(RULES[rule])
    loss = lambda x: jnp.sum(f(jnp.sin(f(x))) ** 2)  # noqa: E731
    x = jnp.stack([X, 2 * X]) if way in IN_BATCHES else jnp.asarray(X)
    quick = functools.partial(jax.jit, compiler_options=QUICK)
    wanted = quick(WAYS[way](loss))(x)
    for execute in MODES:
        of = WAYS[way](pb.bridge(loss, execute=execute))
        for found in (of(x), quick(of)(x)):
            assert_agree(found, wanted, f"{rule} {way} {execute}", 1e-5)


def test_rules_inside_of_loops_and_branches():
    """The Program has its loops in itself; the rule's clip is inside."""
    f = with_rule(RULES["clipped"])

    def loss(x):
        y = lax.scan(lambda c, _: (jnp.sin(f(c)) * 3, None), x, None, length=3)[0]
        return jnp.sum(jax.vmap(lambda y: lax.cond(y > 0, f, jnp.cos, y))(y) ** 2)

    for execute in MODES:
        g = pb.bridge(loss, execute=execute)
        found = jax.grad(lambda x, g=g: 10 * g(x))(jnp.asarray(X))
        assert_agree(found, jax.grad(lambda x: 10 * loss(x))(jnp.asarray(X)), execute, 1e-5)


@pytest.mark.parametrize("execute", MODES)
def test_rounded_cotangents(execute):
    """Where a number is rounded, JAX rounds its cotangent, too."""
    f = lambda x: jnp.sum(lax.reduce_precision(x * x, 8, 7))  # noqa: E731
    g = pb.bridge(f, execute=execute)
    for scale in (0.6404226, 1.2345):
        found, wanted = (jax.grad(lambda x, h=h, c=scale: c * h(x))(jnp.asarray(X)) for h in (g, f))
        assert_agree(found, wanted, f"{scale}", 1e-6)


def test_linear_rules_have_one_pass():
    x = jnp.asarray(X)
    for rule, programs in (("masked", 1), ("clipped", 2)):
        f = with_rule(RULES[rule])
        g = pb.bridge(lambda x, f=f: jnp.sum(f(x) ** 2), execute="julia")
        jaxpr = jax.make_jaxpr(jax.grad(g))(x).jaxpr
        assert len(list(programs_in(jaxpr))) == programs, rule


def test_a_batch_of_gradients_is_one_kernel():
    """The cotangent 1 of each item is seen when it is lowered: nothing is scaled, checked or made anew."""
    g = pb.bridge(lambda x: jnp.sum(jnp.sin(x) ** 2), execute="julia")
    for of, shape in ((jax.vmap(jax.grad(g)), (2, 3)), (jax.vmap(jax.vmap(jax.grad(g))), (4, 2, 3))):
        text = jax.jit(of).lower(jnp.ones(shape)).as_text()
        assert text.count("custom_call") == 1 and "stablehlo.case" not in text


@jax.custom_jvp
def of_both(x, y):
    return y


@functools.partial(of_both.defjvp, symbolic_zeros=True)
def _of_both_jvp(primals, dots):
    """y's tangent, if x has one too: as of a loop's result by the value that it began with."""
    (_, y), (given, dot) = primals, dots
    return y, jnp.zeros_like(y) if isinstance(given, SymbolicZero) else dot


@pytest.mark.parametrize("execute", MODES)
def test_rules_that_ask_what_has_a_tangent(execute):
    """By x the derivative is zero, and by y it is not unless x has a tangent."""
    f = lambda xs: of_both(xs[0], jnp.sin(xs[1]))  # noqa: E731
    g = pb.bridge(f, execute=execute)
    xs = (jnp.float32(0.5), jnp.float32(0.7))
    for k, of in enumerate((WAYS["multiple"], HIGHER["forward"], WAYS["pulled back"])):
        for found in (of(g)(xs), jax.jit(of(g))(xs)):
            assert_agree(found, of(f)(xs), f"{k}", 1e-5)


def steep(x):
    """Its gradient is beyond float32 at 3, and beyond 1e33 elsewhere."""
    return jnp.sum((x * 1e18) ** 2) * 1e3


def flat(x):
    """Its gradient is below all float32, on the way as at the end."""
    return jnp.sum(jnp.sin(x * 1e-25)) * 1e-25


SCALES = [(steep, 1e-12), (steep, 1e-35), (steep, 0.5), (steep, 1.0), (flat, 1e30), (flat, 1e38), (flat, 2.0)]


@pytest.mark.parametrize("execute", MODES)
@pytest.mark.parametrize(("f", "scale"), SCALES)
def test_scaled_beyond_the_range(f, scale, execute):
    if f is steep and scale >= 0.5 and jax.__version_info__ < (0, 12):
        pytest.skip("what is out of range by this little is infinite or not by the order of XLA's products")
    x = jnp.asarray(X)
    g = pb.bridge(f, execute=execute)
    of_scaled = [
        lambda h: jax.grad(lambda x: scale * h(x)),
        lambda h: jax.jit(jax.grad(lambda x: scale * h(x))),
        lambda h: jax.grad(jax.jit(lambda x: scale * h(x))),
        lambda h: lambda x: jax.vmap(jax.vjp(h, x)[1])(jnp.array([scale, 1.0, 0.0])),
        lambda h: lambda x: jax.vmap(lambda x, c: jax.vjp(h, x)[1](c), (None, 0))(x, jnp.array([scale])),
        lambda h: (
            lambda x: jax.vmap(jax.grad(lambda x, c: c * h(x)))(jnp.stack([x, x]), jnp.array([scale, 1.0]))
        ),
    ]
    for k, of in enumerate(of_scaled):
        assert_agree(of(g)(x), of(f)(x), f"{k}", 1e-5, unit=0)


@pytest.mark.parametrize("execute", MODES)
def test_along_a_short_tangent(execute):
    x = jnp.asarray(X)
    g = pb.bridge(steep, execute=execute)
    found, wanted = (jax.linearize(h, x)[1](1e-20 * x) for h in (g, steep))
    assert_agree(found, wanted, "tangent", 1e-5)
    found, wanted = (jax.vmap(jax.linearize(h, x)[1])(1e-20 * jnp.stack([x, 2 * x])) for h in (g, steep))
    assert_agree(found, wanted, "tangents", 1e-5)


def test_scaled_losses_of_narrow_numbers_inside():
    """Weights and loss are float32, what is between is float16: the scale of the loss reaches it."""

    def loss(x):
        half = jnp.sin(x.astype(jnp.float16) * jnp.float16(2e-4)) * jnp.float16(1e-4)
        return jnp.sum(half.astype(jnp.float32))

    found, wanted = (
        jax.grad(lambda x, h=h: h(x) * 2.0**10)(jnp.asarray(X))
        for h in (pb.bridge(loss, execute="julia"), loss)
    )
    assert float(jnp.min(wanted)) > 1e-5
    assert_agree(found, wanted, "gradient", 1e-2)


HIGHER = {
    "hessian of a multiple": lambda f: jax.hessian(lambda x: 3 * f(x)),
    "of a square": lambda f: jax.hessian(lambda x: f(x) ** 2),
    "jitted": lambda f: jax.jacrev(jax.grad(lambda x: 0.5 * jax.jit(f)(x))),
    "forward": lambda f: lambda x: jax.jvp(jax.grad(lambda x: 2 * jax.jit(f)(x)), (x,), (x,))[1],
    "of the derivative along": lambda f: jax.grad(lambda x: jax.linearize(f, x)[1](x * x)),
    "by the cotangent": lambda f: lambda x: jax.grad(lambda c: jnp.sum(jax.vjp(f, x)[1](c)[0] ** 2))(0.5),
    "third": lambda f: jax.jacfwd(jax.hessian(lambda x: 0.5 * jax.jit(f)(x))),
}


@pytest.mark.parametrize("way", HIGHER)
def test_higher_derivatives(way, x64):
    f = lambda x: jnp.sum(jnp.sin(x)) * jnp.prod(x)  # noqa: E731
    of, x = HIGHER[way], jnp.asarray(X, jnp.float64)
    wanted = jax.jit(of(f), compiler_options=QUICK)(x)
    g = pb.bridge(f, execute="julia")
    for found in (of(g)(x), jax.jit(of(g), compiler_options=QUICK)(x)):
        assert_agree(found, wanted, way, 1e-10)
