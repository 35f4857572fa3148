"""Derivatives by the user's own Julia functions, in all of JAX's modes; and none of Enzyme needed."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

import pybridge as pb
from pybridge.runtime import julia

X = np.array([0.3, -1.2, 2.0])

CODE = """
wave(x, p) = (y = p.a .* sin.(x), s = sum(x) * p.a, n = length(x))
function wave_jvp((x, p), (dx, dp))
    (y = dp.a .* sin.(x) .+ p.a .* cos.(x) .* dx, s = sum(dx) * p.a + sum(x) * dp.a, n = nothing)
end
function wave_vjp((x, p), ct)
    (p.a .* cos.(x) .* ct.y .+ p.a * ct.s, (a = sum(sin.(x) .* ct.y) + sum(x) * ct.s, k = nothing))
end
cube(x) = x^3
cube_jvp((x,), (dx,)) = 3x^2 * dx
cube_vjp((x,), ct) = (3x^2 * ct,)
tripled_vjp((x,), ct) = (9x^2 * ct,)
short_vjp((x,), ct) = (1.0, 2.0)
square(z) = z^2
square_jvp((z,), (dz,)) = 2z * dz
square_vjp((z,), ct) = (2z * ct,)
"""


def function(name, *rules, **options):
    named = {rule: f"{name}_{rule}" for rule in rules}
    return pb.julia_function(name, source=CODE, **named, **options)


def reference(x, p):
    return {"y": p["a"] * jnp.sin(x), "s": jnp.sum(x) * p["a"]}


def inexact(tree):
    return {"y": tree["y"], "s": tree["s"]}


P = {"a": 1.5, "k": 3}


def test_both_rules_in_trees():
    wave = function("wave", "jvp", "vjp")

    def loss(f):
        return lambda x, a: sum(jnp.sum(v**2) for v in inexact(f(x, {**P, "a": a})).values())

    for transform in (jax.grad, jax.jacfwd, jax.jacrev):
        got = transform(loss(wave), (0, 1))(X, 1.5)
        for a, b in zip(got, transform(loss(reference), (0, 1))(X, 1.5), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)
    primal, tangent = jax.jvp(lambda x: wave(x, P), (X,), (np.ones(3),))
    np.testing.assert_allclose(tangent["y"], 1.5 * np.cos(X))
    assert primal["n"] == 3 and tangent["n"].dtype == jax.dtypes.float0


def test_all_transforms_in_one():
    cube = function("cube", "jvp", "vjp")
    check_grads(cube, (1.7,), order=1)
    value, linear = jax.linearize(cube, 2.0)
    assert (value, linear(1.0)) == (8.0, 12.0)
    np.testing.assert_allclose(jax.jit(jax.vmap(jax.grad(cube)))(X), 3 * X**2)
    np.testing.assert_allclose(jax.vmap(lambda t: jax.jvp(cube, (2.0,), (t,))[1])(X), 12 * X)
    shared = jax.grad(lambda x: jax.vmap(lambda y: cube(x) * y)(jnp.asarray(X)).sum())(2.0)
    np.testing.assert_allclose(shared, 12 * X.sum())
    batch_shares = jax.vmap(lambda ct: jax.vjp(cube, 2.0)[1](ct)[0])(X)
    np.testing.assert_allclose(batch_shares, 12 * X)

    def roll(x):
        return jax.lax.scan(lambda c, _: (cube(c) * 0.5, c), x, None, length=3)[0]

    def rolled(x):
        for _ in range(3):
            x = x**3 * 0.5
        return x

    np.testing.assert_allclose(jax.grad(roll)(1.1), jax.grad(rolled)(1.1), rtol=1e-12)


def test_it_is_the_users_rule_that_runs():
    wrong = pb.julia_function("cube", source=CODE, vjp="tripled_vjp")
    assert jax.grad(wrong)(2.0) == 36.0


def test_complex_numbers_follow_jax():
    square = function("square", "jvp", "vjp")
    z = 0.5 - 2j
    np.testing.assert_allclose(jax.grad(square, holomorphic=True)(z), 2 * z)
    np.testing.assert_allclose(jax.vjp(square, z)[1](1j)[0], jax.vjp(lambda z: z**2, z)[1](1j)[0])


def test_a_rule_of_another_shape_is_refused():
    bad = pb.julia_function("cube", source=CODE, vjp="short_vjp")
    with pytest.raises(pb.JuliaError, match="a tuple of 1 but returned"):
        jax.grad(bad)(2.0)


def test_a_missing_rule_is_named():
    with pytest.raises(pb.JuliaError, match="there is no cube_pullback"):
        jax.grad(pb.julia_function("cube", source=CODE, vjp="cube_pullback"))(2.0)


def test_integers_have_no_derivative():
    np.testing.assert_array_equal(
        jax.grad(lambda a: function("wave", "vjp")(X, {"a": a, "k": 3})["s"])(1.5), X.sum()
    )
    with pytest.raises(TypeError):
        jax.grad(function("cube", "vjp"))(2)


def test_without_enzyme_a_derivative_without_a_rule_says_what_helps():
    if julia.find().require().enzyme is not None:
        pytest.skip("this Julia has Enzyme.jl")
    with pytest.raises(pb.EngineUnavailable, match="jvp= and vjp="):
        jax.grad(function("cube"))(2.0)
    with pytest.raises(pb.EngineUnavailable, match=r"Enzyme\.jl"):
        jax.hessian(function("cube", "jvp", "vjp"))(2.0)
    assert function("cube")(2.0) == 8.0


def test_where_jit_is_disabled():
    cube = function("cube", "vjp", result=jax.ShapeDtypeStruct((), np.float64))
    with jax.disable_jit():
        assert cube(2.0) == 8 and jax.grad(cube)(2.0) == 12
