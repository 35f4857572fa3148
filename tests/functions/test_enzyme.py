"""Derivatives of Julia functions by Enzyme.jl."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pybridge as pb

pytestmark = [pytest.mark.enzyme, pytest.mark.usefixtures("enzyme")]

X = np.array([0.3, -1.2, 2.0])
A = np.array([[1.0, 2.0, -0.5], [0.4, 0.1, 3.0]])

CODE = """
using LinearAlgebra
import Enzyme
import Enzyme: EnzymeRules

waves(x, a) = sum(abs2, a .* sin.(x))
cubes!(out, x) = (for i in eachindex(x); out[i] = x[i]^3; end; nothing)
function horner(x)                  # a loop that mutates
    y = zero(x)
    for k in 3:-1:1, i in eachindex(x)
        y[i] = y[i] * x[i] + k
    end
    y
end
product(A, x) = A * x
gram(A) = A' * A
scale(m, k) = (y = m.w .* m.nested[1] .* k, n = k)
overwrites(x) = (x .= x .^ 2; sum(x))
plain(A::Matrix{Float64}, x::Vector{Float64}) = A * x
square(z) = z .* conj.(z) .+ z .^ 2
parts(x) = (x[1] > 0 ? x .^ 2 : x, 2.0 * x[2])

# a rule of the user's, wrong by a factor of three on purpose
tripled(x) = x^2
const Rules, Tripled = EnzymeRules, Enzyme.Const{typeof(tripled)}
Rules.forward(::Rules.FwdConfig, f::Tripled, ::Type{<:Enzyme.Duplicated}, x::Enzyme.Duplicated) =
    Enzyme.Duplicated(f.val(x.val), 6 * x.val * x.dval)
Rules.forward(::Rules.FwdConfig, f::Tripled, ::Type{<:Enzyme.DuplicatedNoNeed}, x::Enzyme.Duplicated) =
    6 * x.val * x.dval
Rules.augmented_primal(c::Rules.RevConfig, f::Tripled, ::Type{<:Enzyme.Active}, x::Enzyme.Active) =
    Rules.AugmentedReturn(Rules.needs_primal(c) ? f.val(x.val) : nothing, nothing, nothing)
Rules.reverse(::Rules.RevConfig, ::Tripled, dret::Enzyme.Active, tape, x::Enzyme.Active) =
    (6 * x.val * dret.val,)
by_rule(x) = tripled(x) + x

"""


def function(name, **options):
    return pb.julia_function(name, source=CODE, **options)


def waves(x, a):
    return jnp.sum((a * jnp.sin(x)) ** 2)


TRANSFORMS = {
    "grad": jax.grad,
    "jacfwd": jax.jacfwd,
    "hessian": jax.hessian,
    "reverse over reverse": lambda f: jax.jacrev(jax.jacrev(f)),
    "reverse over forward": lambda f: jax.jacrev(jax.jacfwd(f)),
    "forward over forward": lambda f: jax.jacfwd(jax.jacfwd(f)),
    "jit of hessian": lambda f: jax.jit(jax.hessian(f)),
    "gradient of a gradient": lambda f: jax.grad(lambda x: jnp.sum(jnp.sin(jax.grad(f)(x)))),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms(name):
    f = function("waves")
    got = TRANSFORMS[name](lambda x: f(x, jnp.tanh(x[0])))(X)
    np.testing.assert_allclose(got, TRANSFORMS[name](lambda x: waves(x, jnp.tanh(x[0])))(X), rtol=1e-10)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_of_a_batch(name):
    f = function("waves")

    def summed(wave):
        return lambda x: jnp.sum(jax.vmap(wave, (None, 0))(x, jnp.asarray(X)) * jnp.asarray([1.0, 2.0, 3.0]))

    np.testing.assert_allclose(TRANSFORMS[name](summed(f))(X), TRANSFORMS[name](summed(waves))(X), rtol=1e-10)


def test_third_derivatives_are_refused_by_name():
    f = function("waves")
    with pytest.raises(pb.NotDifferentiable, match="waves: third derivatives"):
        jax.jacfwd(jax.hessian(lambda x: f(x, 1.0)))(X)


@pytest.mark.parametrize("inputs", ["view", "copy"])
def test_blas(inputs):
    got = jax.jacrev(function("product", inputs=inputs), (0, 1))(A, X)
    for a, b in zip(got, jax.jacrev(jnp.matmul, (0, 1))(A, X), strict=True):
        np.testing.assert_allclose(a, b)
    gram = function("gram", inputs=inputs)
    np.testing.assert_allclose(jax.jacfwd(gram)(A), jax.jacfwd(lambda a: a.T @ a)(A))
    np.testing.assert_allclose(jax.jacrev(function("plain"), 1)(A, X), A)


def test_in_place_and_loops():
    cubes = function("cubes!", inplace=True, result=lambda x: x)
    np.testing.assert_allclose(jax.jacrev(cubes)(X), np.diag(3 * X**2))
    np.testing.assert_allclose(jax.jacfwd(cubes)(X), np.diag(3 * X**2))
    np.testing.assert_allclose(jax.jacrev(function("horner"))(X), np.diag(2 + 6 * X))


def test_trees_and_integers():
    f = function("scale")
    model = {"w": jnp.asarray(X), "nested": (2.0,)}
    got = jax.grad(lambda m: jnp.sum(f(m, 3)["y"] ** 2))(model)
    want = jax.grad(lambda m: jnp.sum((m["w"] * m["nested"][0] * 3) ** 2))(model)
    jax.tree.map(np.testing.assert_allclose, got, want)
    first, second = jax.jacrev(function("parts"))(X)
    np.testing.assert_allclose(first, np.diag(2 * X))
    np.testing.assert_allclose(second, [0, 2, 0])


def test_what_the_function_overwrites_is_a_copy():
    x = jnp.asarray(X)
    np.testing.assert_allclose(jax.grad(function("overwrites", inputs="copy"))(x), 2 * X)
    np.testing.assert_array_equal(x, X)


def test_complex_numbers_follow_jax():
    f, z = function("square"), X + 1j * X[::-1]

    def g(z):
        return z * jnp.conj(z) + z**2

    cotangent = z[::-1] * 1j
    np.testing.assert_allclose(jax.vjp(f, z)[1](cotangent)[0], jax.vjp(g, z)[1](cotangent)[0])
    np.testing.assert_allclose(jax.jvp(f, (z,), (cotangent,))[1], jax.jvp(g, (z,), (cotangent,))[1])


def test_the_users_enzyme_rule_is_honoured():
    f = function("by_rule")
    assert jax.grad(f)(2.0) == 13.0  # 5 without the rule
    assert jax.jacfwd(f)(2.0) == 13.0


# A branch on a constant, and tuples of mixed use: of such code Enzyme.jl on Julia 1.10 has given a reverse
# mode of 0, without a word (Enzyme.jl issue 2987).
BOUNDED = """
struct Bounded
    upper::Float64
end
function transformed(x, upper)
    isfinite(upper) && return log(x / upper) / one(x), 0.0
    log(x), 0.0
end
(b::Bounded)(x) = [first(transformed(x[1], b.upper))]
const bounded = Bounded(1.0)
"""


def test_a_silent_error_of_enzyme_is_found_where_it_is_verified():
    f = pb.julia_function("bounded", source=BOUNDED, verify=True)
    x = np.array([0.5])
    try:
        derivative = jax.jacrev(f)(x)
    except pb.WrongDerivative as found:
        assert "difference quotients tend to" in str(found)
    else:
        np.testing.assert_allclose(derivative, [[2.0]], rtol=1e-6)
    traced = pb.julia_function("bounded", source=BOUNDED, engine="transpose", verify=True)
    np.testing.assert_allclose(jax.jacrev(traced)(x), [[2.0]], rtol=1e-6)


def test_a_rule_for_enzyme_that_is_wrong_is_found():
    with pytest.raises(pb.WrongDerivative, match=r"of result 0 by arguments\[0\]"):
        function("by_rule", verify=True)(2.0)
    assert jax.grad(function("waves", verify=True))(X, 0.5).shape == X.shape
