"""Calls of Julia functions: what goes in, what comes out, where in a computation they may stand."""

from __future__ import annotations

import textwrap
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pybridge as pb

STRUCT = jax.ShapeDtypeStruct
X = np.array([1.0, 2.0, 3.0])
A = np.arange(6.0).reshape(2, 3)

CODE = """
using LinearAlgebra
cube(x) = x^3
cubes!(out, x) = (for i in eachindex(x); out[i] = x[i]^3; end; nothing)
product(A, x) = A * x
gram(A) = A' * A
entry(x) = x[2, 1, 3]
kinds(x) = string(typeof(x)) == "" ? 0 : (x isa Transpose ? 2 : x isa Matrix ? 1 : 3)
narrow(A::Matrix{Float64}) = sum(A)
scale(model) = (y = model.w .* model.nested[1], n = length(model.w), none = nothing)
grid(x) = [100i + 10j + k + x for i in 1:2, j in 1:3, k in 1:4]
fill_grid!(out, x) = (out.a .= [10i + j for i in 1:2, j in 1:3]; out.b[] = x; nothing)
scratch(x) = (x .*= 2; sum(x))
half(x) = 0.5 * x
halves(x::Vector) = 0.5 .* x
nothing_to_do(x) = x
"""


def function(name, **options):
    return pb.julia_function(name, source=CODE, **options)


def test_numbers_go_in_and_out_as_numbers():
    cube = function("cube")
    assert cube(2.0) == 8.0
    assert cube(2).dtype == jnp.asarray(2).dtype
    assert cube(1 + 2j) == (1 + 2j) ** 3
    assert jax.jit(cube)(3.0) == 27.0


def test_results_may_be_promised_by_the_types_of_the_arguments():
    double = function("product", result=lambda a, x: STRUCT(a.shape[:1], x.dtype))
    np.testing.assert_allclose(double(A, X), A @ X)
    np.testing.assert_allclose(jax.jit(double)(A, X), A @ X)


def test_indices_are_pythons():
    x = np.arange(24.0).reshape(2, 3, 4)
    assert function("entry")(x) == x[1, 0, 2]
    expected = np.fromfunction(lambda i, j, k: 100 * (i + 1) + 10 * (j + 1) + k + 1.5, (2, 3, 4))
    np.testing.assert_array_equal(function("grid")(0.5), expected)
    np.testing.assert_allclose(function("gram")(A), A.T @ A)


@pytest.mark.parametrize(("inputs", "kind"), [("view", 2), ("copy", 1), ("auto", 2)])
def test_matrices_are_shown_as_asked(inputs, kind):
    assert function("kinds", inputs=inputs)(A) == kind


def test_methods_for_plain_arrays_get_plain_arrays():
    assert function("narrow")(A) == A.sum()
    np.testing.assert_array_equal(function("halves")(X), X / 2)


class Pair(NamedTuple):
    w: jax.Array
    nested: tuple


def test_trees_become_tuples_and_named_tuples():
    scale = function("scale")
    for model in ({"w": X, "nested": (2.0,)}, Pair(X, (2.0,)), {"nested": [2.0], "w": X}):
        got = scale(model)
        np.testing.assert_array_equal(got["y"], 2 * X)
        assert got["n"] == 3 and got["none"] is None
    assert function("nothing_to_do")((X, [None, {"a": 1.0}]))[1][1]["a"] == 1.0


def test_an_in_place_function_fills_its_result():
    np.testing.assert_array_equal(function("cubes!", inplace=True, result=lambda x: x)(X), X**3)
    result = {"b": STRUCT((), jnp.float64), "a": STRUCT((2, 3), jnp.float64)}
    for inputs in ("view", "copy"):
        got = function("fill_grid!", inplace=True, result=result, inputs=inputs)(4.0)
        np.testing.assert_array_equal(got["a"], [[11, 12, 13], [21, 22, 23]])
        assert got["b"] == 4.0


def test_what_the_function_may_write_to_is_a_copy():
    x = jnp.asarray(X)
    assert function("scratch", inputs="copy")(x) == 2 * X.sum()
    np.testing.assert_array_equal(x, X)


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint16", "int64", "float16", "bfloat16", "float32", "complex64"]
)
def test_dtypes(dtype):
    x = jnp.asarray([0, 1, 1]).astype(dtype)
    y = function("nothing_to_do")(x)
    assert y.dtype == x.dtype
    np.testing.assert_array_equal(y, x)


def test_empty_arrays():
    assert function("nothing_to_do")(np.zeros((0, 3))).shape == (0, 3)


def test_inferred_results_are_as_short_as_jaxs_types():
    with jax.enable_x64(False):
        assert function("half")(3.0) == 1.5  # 0.5 is a Float64 in Julia
        assert function("half")(3.0).dtype == jnp.float32


def test_vmap_is_one_call():
    product = function("product", result=lambda a, x: STRUCT(a.shape[:1], x.dtype))
    rng = np.random.default_rng(4)
    a, x = rng.normal(size=(5, 2, 3)), rng.normal(size=(4, 3))
    np.testing.assert_allclose(jax.vmap(product, (0, None))(a, X), a @ X)
    np.testing.assert_allclose(jax.vmap(product, (None, 1), 1)(A, x.T), A @ x.T)
    np.testing.assert_allclose(jax.vmap(product, (2, None))(a.transpose(1, 2, 0), X), a @ X)
    nested = jax.jit(jax.vmap(jax.vmap(product, (None, 0)), (0, None)))
    np.testing.assert_allclose(nested(a, x), np.einsum("bij,cj->bci", a, x), rtol=1e-12)
    assert str(jax.make_jaxpr(nested)(a, x)).count("julia_function[") == 1


def test_scan_and_cond():
    step = function("halves", result=lambda x: x)
    final, sums = jax.lax.scan(lambda c, _: (step(c), c.sum()), jnp.asarray(X), None, length=3)
    np.testing.assert_allclose(final, X / 8)
    np.testing.assert_allclose(sums, [6, 3, 1.5])
    chosen = jax.jit(lambda p, x: jax.lax.cond(p, step, lambda x: x, x))
    np.testing.assert_allclose(chosen(True, X), X / 2)


def test_a_file_with_an_include(tmp_path):
    (tmp_path / "inner.jl").write_text("triple(x) = 3x\n")
    model = tmp_path / "model.jl"
    model.write_text('module Inner\ninclude("inner.jl")\nend\noutside(x) = Inner.triple(x) + 1\n')
    assert pb.julia_function("outside", source=model)(2.0) == 7.0
    assert pb.julia_function("Inner.triple", source=str(model))(2.0) == 6.0
    model.write_text("outside(x) = 5x\n")
    assert pb.julia_function("outside", source=model)(2.0) == 10.0


def test_a_package_and_base():
    np.testing.assert_allclose(pb.julia_function("tr", source="LinearAlgebra")(A[:, :2]), 4.0)
    assert pb.julia_function("hypot")(3.0, 4.0) == 5.0
    assert pb.julia_function("Base.Math.cbrt")(27.0) == 3.0


def test_functions_of_two_sources_do_not_meet():
    one, two = (pb.julia_function("f", source=f"f(x) = x + {k}\n") for k in (1, 2))
    assert (one(0.0), two(0.0)) == (1.0, 2.0)


def test_threads_call_at_once():
    from concurrent.futures import ThreadPoolExecutor

    product = jax.jit(function("product", result=lambda a, x: STRUCT(a.shape[:1], x.dtype)))
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda k: product(A * k, X), range(40)))
    np.testing.assert_allclose(np.stack(results), np.arange(40)[:, None] * (A @ X))


def test_the_source_may_be_indented():
    code = textwrap.dedent("""
        function spread(x)
            m = sum(x) / length(x)
            sqrt(sum(abs2, x .- m))
        end
    """)
    np.testing.assert_allclose(pb.julia_function("spread", source=code)(X), np.sqrt(2))
