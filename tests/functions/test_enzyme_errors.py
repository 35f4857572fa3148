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
