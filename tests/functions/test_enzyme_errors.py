"""What Enzyme.jl cannot differentiate is an EnzymeError; what the function gets wrong stays its own error.

After each, JAX's arrays are what they were, and the next derivative works.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pybridge as pb

pytestmark = [pytest.mark.enzyme, pytest.mark.usefixtures("enzyme")]

X = np.array([0.3, -1.2, 2.0])
SCALAR = jax.ShapeDtypeStruct((), jnp.float64)

CODE = """
fine(x) = sum(abs2, x)

# types that nobody can infer, of which Enzyme makes something
boxes(x) = (s = Any[x[1]]; for v in x; push!(s, v * s[end]); end; convert(Float64, s[end]))
knob = 2.0
untyped(x) = knob * sum(x)

# what Enzyme refuses
either(x) = (y = x[1] > 0 ? x[1] : 0; y * 2.0)                                  # a float or an integer
const KEPT = Dict{Any,Any}(1 => 2.0)
keeps(x) = (KEPT[1] = x; sum(KEPT[1]))                                          # in memory without a shadow
foreign(x) = ccall(:time, Clong, (Ptr{Cvoid},), C_NULL) > 0 ? sum(x) : 0.0    # C code, unseen
evaluates(x) = eval(:(sum($x)))
strtod(x) = ccall(:strtod, Cdouble, (Cstring, Ptr{Cvoid}), "2.5", C_NULL) * sum(x)

# what it would get wrong, or die of
spawns(x) = fetch(Threads.@spawn sum(x))::Float64
task(x) = (t = Task(() -> sum(x)); schedule(t); fetch(t)::Float64)
big_sum(x) = (s = big(0.0); for v in x; s += v; end; Float64(s))
big_in_closure(x) = sum(v -> Float64(sqrt(BigFloat(v)^2)), x)
big_array(x) = Float64(sum(BigFloat.(x)))
helped(x) = helper(x, 3)
@noinline helper(x, n) = n == 0 ? big_sum(x) : helper(x, n - 1)

# of which it is not afraid
threads(x) = (y = zero(x); Threads.@threads for i in eachindex(x); y[i] = x[i]^2; end; sum(y))
ruled(x) = to_big(x[1]) * x[2]
@noinline to_big(x) = Float64(big(x)^2)
import Enzyme
import Enzyme: EnzymeRules
const Big = Enzyme.Const{typeof(to_big)}
EnzymeRules.augmented_primal(c, f::Big, ::Type{<:Enzyme.Active}, x::Enzyme.Active) =
    EnzymeRules.AugmentedReturn(EnzymeRules.needs_primal(c) ? f.val(x.val) : nothing, nothing, nothing)
EnzymeRules.reverse(c, ::Big, d::Enzyme.Active, tape, x::Enzyme.Active) = (2 * x.val * d.val,)

# what the function gets wrong
throws(x) = x[1] > 0 ? error("in the dark") : sum(x)
outside(x) = sum(x) + x[4]
writes(x) = (x[1] = 7.0; sum(x))
vector(x) = 2 .* x
shorter(x) = Float32(sum(x))
"""

REFUSED = {
    "either": "IllegalTypeAnalysisException",
    "keeps": "EnzymeRuntimeActivityError",
    "foreign": "EnzymeNoDerivativeError",
    "evaluates": "EnzymeRuntimeException",
    "strtod": "EnzymeNoDerivativeError",
    "spawns": "other tasks.*jvp=",
    "task": "other tasks.*jvp=",
    "big_sum": "BigFloat: .*jvp=.*big_sum",
    "big_in_closure": "BigFloat",
    "big_array": "BigFloat",
    "helped": "big_sum",
}
WRONG = {
    "throws": ("ErrorException", "in the dark"),
    "outside": ("BoundsError", "attempt to access"),
    "writes": ("InputMutated", "writes to one of its arguments"),
    "vector": ("ResultMismatch", "f64"),
    "shorter": ("ResultMismatch", "Float32"),
}


def function(name):
    return pb.julia_function(name, source=CODE, result=SCALAR)


def next_one_works(x):
    np.testing.assert_array_equal(x, X)
    np.testing.assert_allclose(jax.grad(function("fine"))(x), 2 * X)


@pytest.mark.parametrize("name", REFUSED)
def test_what_enzyme_refuses(name):
    x = jnp.asarray(X)
    with pytest.raises(pb.EnzymeError, match=REFUSED[name]) as refused:
        jax.grad(function(name))(x)
    assert refused.value.stacktrace
    next_one_works(x)


def test_what_looks_alike_is_not_refused():
    np.testing.assert_allclose(jax.grad(function("threads"))(X), 2 * X)
    np.testing.assert_allclose(jax.grad(function("ruled"))(X), [2 * X[0] * X[1], X[0] ** 2, 0])


def test_what_enzyme_refuses_under_jit():
    x = jnp.asarray(X)
    with pytest.raises((pb.EnzymeError, jax.errors.JaxRuntimeError), match="IllegalTypeAnalysisException"):
        jax.block_until_ready(jax.jit(jax.grad(function("either")))(x))
    next_one_works(x)


@pytest.mark.parametrize("transform", [jax.grad, jax.jacfwd], ids=["reverse", "forward"])
@pytest.mark.parametrize("name", WRONG)
def test_mistakes_of_the_function(name, transform):
    kind, message = WRONG[name]
    x = jnp.asarray(X)
    with pytest.raises(pb.JuliaError, match=message) as caught:
        transform(function(name))(x)
    assert caught.value.kind == kind
    assert not isinstance(caught.value, pb.EnzymeError)
    next_one_works(x)


def test_one_call_may_throw_and_the_next_not():
    gradient = jax.grad(function("throws"))
    with pytest.raises(pb.JuliaError, match="in the dark"):
        gradient(X)
    np.testing.assert_allclose(gradient(-np.abs(X)), np.ones(3))


def test_types_that_cannot_be_inferred():
    boxes = function("boxes")
    np.testing.assert_allclose(jax.grad(boxes)(X), jax.grad(lambda x: x[0] * jnp.prod(x))(X))
    np.testing.assert_allclose(jax.jacfwd(boxes)(X), jax.grad(lambda x: x[0] * jnp.prod(x))(X))
    np.testing.assert_allclose(jax.grad(function("untyped"))(X), 2 * np.ones(3))
