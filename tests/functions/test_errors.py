"""Every mistake is an error with Julia's words; JAX's arrays stay what they are; the next call works."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pybridge as pb

STRUCT = jax.ShapeDtypeStruct
X = np.array([1.0, 2.0, 3.0])
A = np.eye(3)

CODE = """
using LinearAlgebra
fine(x) = 2 .* x
writes(x) = (x[1] = 7.0; x)
sorts(x) = sort!(x; rev = true)
by_blas(x) = (BLAS.scal!(length(x), 7.0, x, 1); 2 .* x)
by_mul(x) = (mul!(x, Matrix(2.0I, 3, 3), ones(3)); 2 .* x)
through_view(x) = (v = view(x, 2:3); v .= 0.0; x)
throws(x) = error("no such luck with ", length(x))
deep(x) = deep(x) .+ 1
indexes(x) = x[10]
longer(x) = [x; x]
shorter_dtype(x) = Float32.(x)
pair(x) = (x, x)
words(x) = "text"
unsteady(x) = sum(x) > 0 ? "text" : x
two(x, y) = x
"""
PROMISE = STRUCT((3,), jnp.float64)

BAD = {
    "writes": ("InputMutated", "writes to one of its arguments"),
    "sorts": ("InputMutated", "writes to one of its arguments"),
    "by_blas": ("InputMutated", 'inputs="copy"'),
    "by_mul": ("InputMutated", 'inputs="copy"'),
    "through_view": ("InputMutated", "writes to one of its arguments"),
    "throws": ("ErrorException", "no such luck with 3"),
    "indexes": ("BoundsError", "attempt to access"),
    "longer": ("ResultMismatch", r"f64\[3\].*of size \(6,\)"),
    "shorter_dtype": ("ResultMismatch", r"f64\[3\].*Float32"),
    "pair": ("ResultMismatch", "Tuple"),
    "words": ("ResultMismatch", "String"),
    "unsteady": ("ResultMismatch", "String"),
    "two": ("MethodError", "no method matching two"),
    "absent": ("FunctionNotFound", "there is no absent"),
}


def function(name, **options):
    return pb.julia_function(name, source=CODE, **{"result": PROMISE, **options})


@pytest.mark.parametrize("name", BAD)
def test_a_bad_call_is_a_julia_error(name):
    kind, message = BAD[name]
    x = jnp.asarray(X)
    with pytest.raises(pb.JuliaError, match=message) as caught:
        function(name)(x)
    assert caught.value.kind == kind
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(function("fine")(x), 2 * X)


@pytest.mark.parametrize(
    "name", [n for n, (kind, _) in BAD.items() if kind not in ("MethodError", "FunctionNotFound")]
)
def test_under_jit_the_error_is_xlas_with_julias_words(name):
    x = jnp.asarray(X)
    with pytest.raises(jax.errors.JaxRuntimeError) as caught:
        jax.block_until_ready(jax.jit(function(name))(x))
    assert f"JuliaError in a call of a Julia function\n{BAD[name][0]}\n" in str(caught.value)
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(jax.jit(function("fine"))(x), 2 * X)


def test_the_stack_trace_names_the_users_function():
    with pytest.raises(pb.JuliaError) as caught:
        function("throws")(X)
    assert "throws(" in caught.value.stacktrace


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(pb.JuliaError, match=r"nowhere\.jl cannot be read"):
        pb.julia_function("f", source=tmp_path / "nowhere.jl")


def test_a_source_that_does_not_parse():
    with pytest.raises(pb.JuliaError, match=r"source of julia_function|premature|incomplete"):
        pb.julia_function("f", source="f(x) = (", result=PROMISE)(X)


def test_a_source_that_throws_when_loaded():
    with pytest.raises(pb.JuliaError, match="not today"):
        pb.julia_function("f", source='error("not today")\n', result=PROMISE)(X)


def test_a_package_that_is_not_installed():
    with pytest.raises(pb.JuliaError, match=r"NoSuchPackage is not installed.*Pkg.add") as caught:
        pb.julia_function("f", source="NoSuchPackage", result=PROMISE)(X)
    assert caught.value.kind == "FunctionNotFound"


def test_a_result_that_jax_cannot_hold():
    with pytest.raises(pb.JuliaError, match="which JAX cannot hold"):
        function("words", result=None)(X)


def test_arguments_that_are_no_arrays():
    for bad in ("text", object(), jax.random.key(0)):
        with pytest.raises(pb.ArgumentError):
            function("fine")(bad)
    with pytest.raises(pb.ArgumentError, match="not a name"):
        function("fine")({"a b": X})


def test_options():
    with pytest.raises(pb.UnknownOption):
        function("fine", engine="tapenade")
    with pytest.raises(pb.UnknownOption):
        function("fine", inputs="shared")
    with pytest.raises(pb.ArgumentError, match="needs result="):
        function("fine", result=None, inplace=True)
    with pytest.raises(pb.ArgumentError, match="name of a Julia function"):
        pb.julia_function(np.sin)
    with pytest.raises(pb.ArgumentError, match="code goes into source="):
        pb.julia_function("x -> x + 1")


def test_a_promise_that_jax_cannot_keep():
    with jax.enable_x64(False), pytest.raises(pb.ArgumentError, match="jax_enable_x64"):
        function("fine")(X)


def test_exports_hold_no_julia():
    with pytest.raises(pb.EngineUnavailable, match="export"):
        jax.export.export(jax.jit(function("fine")))(X)


def test_runaway_recursion_ends_in_an_error():
    with pytest.raises(pb.JuliaError) as caught:
        function("deep")(X)
    assert caught.value.kind == "StackOverflowError"
    np.testing.assert_array_equal(function("fine")(X), 2 * X)
