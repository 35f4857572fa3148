"""Julia functions under engine="transpose": the calls of engine="enzyme", as operations of JAX."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from casekit import QUICK

import pybridge as pb

STRUCT = jax.ShapeDtypeStruct
X = np.array([1.0, 2.0, 3.0])
A = np.arange(6.0).reshape(2, 3)

CODE = """
using LinearAlgebra
using JaxprAD: JaxprAD, select, while_loop, scan
const WEIGHTS = reshape(sin.(1:120), 10, 12)
const SMALL = [1.0 2.0 3.0; 4.0 5.0 6.0]
cube(x) = x^3
product(A, x) = A * x
gram(A) = A' * A
weigh(x) = WEIGHTS * x
weigh_little(x) = SMALL * x
entry(x) = x[2, 1, 3]
scale(model) = (y = model.w .* model.nested[1], n = length(model.w), none = nothing)
grid(x) = [100i + 10j + k + x for i in 1:2, j in 1:3, k in 1:4]
cubes!(out, x) = (for i in eachindex(x); out[i] = x[i]^3; end; nothing)
fill_grid!(out, x) = (out.a .= [10i + j for i in 1:2, j in 1:3]; out.b[] = x; nothing)
scratch(x) = (x .*= 2; sum(x))
same(x) = x
half(x) = 0.5 * x
constants(x) = (1.5, [1, 2, 3], true, x > 0)
spectrum(x) = abs2.(x .* exp(2im)) .+ real(x[1] * conj(x[2]))
picked(x, k) = x[k] + k
largest(x) = argmax(x)
doubled(x) = while_loop(y -> y < 100, y -> 2y, x)
powers(x) = scan((s, k) -> (s * x, s * k), one(x), [1.0, 2.0, 3.0])
sides(x) = JaxprAD.cond(x > 0, sqrt, y -> y^2, x)
relu(x) = select.(x .> 0, x, 0)
function path!(out, x)
    out[:, 1] .= x
    for k in 2:size(out, 2), i in 1:size(out, 1)
        out[i, k] = out[i, k-1] + sin(out[i, k-1]) / k
    end
end
"""

TALL = {"b": STRUCT((), jnp.float64), "a": STRUCT((2, 3), jnp.float64)}
CALLS = {
    "a number": ("cube", (2.0,), {}),
    "an integer": ("cube", (2,), {}),
    "a complex number": ("cube", (1 + 2j,), {}),
    "matrix and vector": ("product", (A, X), {}),
    "a promise": ("product", (A, X), {"result": lambda a, x: STRUCT(a.shape[:1], x.dtype)}),
    "a matrix": ("gram", (A,), {}),
    "a large constant": ("weigh", (np.arange(12.0),), {}),
    "a small constant": ("weigh_little", (X,), {}),
    "three axes in": ("entry", (np.arange(24.0).reshape(2, 3, 4),), {}),
    "three axes out": ("grid", (0.5,), {}),
    "three axes in and out": ("same", (np.arange(24.0).reshape(2, 3, 4),), {}),
    "a tree": ("scale", ({"w": X, "nested": (2.0,)},), {}),
    "a tree in and out": ("same", ((X, [None, {"b": 1.0, "a": A}]),), {}),
    "in place": ("cubes!", (X,), {"inplace": True, "result": lambda x: x}),
    "a tree in place": ("fill_grid!", (4.0,), {"inplace": True, "result": TALL}),
    "a loop in place": ("path!", (X,), {"inplace": True, "result": STRUCT((3, 8), jnp.float64)}),
    "a copy written to": ("scratch", (X,), {"inputs": "copy"}),
    "constants": ("constants", (1.0,), {}),
    "complex numbers": ("spectrum", (np.array([1 + 2j, 3 - 1j]),), {}),
    "an index": ("picked", (X, 2), {}),
    "an index out": ("largest", (X,), {}),
    "while": ("doubled", (3.0,), {}),
    "scan": ("powers", (1.5,), {}),
    "one side": ("sides", (2.0,), {}),
    "the other side": ("sides", (-2.0,), {}),
    "select": ("relu", (np.array([-1.0, 0.5]),), {}),
    "no elements": ("same", (np.zeros((0, 3)),), {}),
}


@pytest.mark.parametrize("name", CALLS)
def test_both_engines_give_the_same(name):
    function, arguments, options = CALLS[name]
    called = pb.julia_function(function, source=CODE, **options)(*arguments)
    traced = pb.julia_function(function, source=CODE, engine="transpose", **options)
    for given in (traced(*arguments), jax.jit(traced, compiler_options=QUICK)(*arguments)):
        assert jax.tree.structure(given) == jax.tree.structure(called)
        for y, wanted in zip(jax.tree.leaves(given), jax.tree.leaves(called), strict=True):
            assert (y.shape, y.dtype) == (wanted.shape, wanted.dtype)
            np.testing.assert_allclose(y, wanted, rtol=1e-12)


def traced(name, **options):
    return pb.julia_function(name, source=CODE, engine="transpose", **options)


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint16", "int64", "float16", "bfloat16", "float32", "complex64"]
)
def test_dtypes(dtype):
    x = jnp.asarray([[0, 1, 1]]).astype(dtype)
    y = traced("same")(x)
    assert y.dtype == x.dtype
    np.testing.assert_array_equal(y, x)


def test_single_precision_stays_that():
    y = traced("product")(A.astype(np.float32), X.astype(np.float32))
    assert y.dtype == jnp.float32
    assert "f64" not in str(pb.trace(traced("product"))(A.astype(np.float32), X.astype(np.float32)))
    assert traced("half")(np.float32(3)).dtype == jnp.float64  # 0.5 is a Float64 in Julia


def test_without_64_bit_types_there_are_none():
    with jax.enable_x64(False):
        x = jnp.asarray(X)
        for name, arguments in (
            ("half", (3.0,)),
            ("weigh", (jnp.arange(12.0),)),
            ("largest", (x,)),
            ("constants", (1.0,)),
        ):
            called = pb.julia_function(name, source=CODE)(*arguments)
            given = traced(name)(*arguments)
            jax.tree.map(lambda y, w: np.testing.assert_allclose(y, w, rtol=1e-5), given, called)
            assert [y.dtype for y in jax.tree.leaves(given)] == [w.dtype for w in jax.tree.leaves(called)]
        with pytest.raises(pb.ArgumentError, match="jax_enable_x64"):
            traced("half", result=STRUCT((), np.float64))(3.0)
        with pytest.raises(pb.JuliaError, match="f32") as caught:
            traced("half", result=STRUCT((), np.float32))(3.0)
        assert caught.value.kind == "ResultMismatch"


def test_the_operations_are_jaxs_own():
    operations = str(jax.make_jaxpr(jax.jit(jax.grad(lambda x: traced("product")(A, x).sum())))(X))
    assert "julia" not in operations and "dot_general" in operations and "callback" not in operations


def test_the_lines_are_julias():
    line = CODE.splitlines().index("cube(x) = x^3") + 1
    assert f"# source of julia_function:{line} (cube)" in str(pb.trace(traced("cube"))(2.0))
    lowered = jax.jit(traced("cube")).lower(2.0).as_text(debug_info=True)
    assert f'"source of julia_function":{line}:' in lowered


def test_a_file(tmp_path):
    (tmp_path / "inner.jl").write_text("triple(x) = 3x\n")
    model = tmp_path / "model.jl"
    model.write_text('include("inner.jl")\n\noutside(x) = triple(x) + 1\n')
    f = pb.julia_function("outside", source=model, engine="transpose")
    assert f(2.0) == 7.0
    text = str(pb.trace(f)(2.0))
    assert "# inner.jl:1 (triple)" in text and "# model.jl:3 (outside)" in text


def test_a_package_and_base():
    trace = pb.julia_function("tr", source="LinearAlgebra", engine="transpose")
    np.testing.assert_allclose(trace(A[:, :2]), 4.0)
    assert pb.julia_function("hypot", engine="transpose")(3.0, 4.0) == 5.0
