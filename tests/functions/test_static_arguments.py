"""Arguments of Julia functions that are constants for Julia, and what is advised where one should be."""

from __future__ import annotations

import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pybridge as pb

ENGINES = ("transpose", "enzyme")
X = jnp.arange(5.0)


@pytest.mark.parametrize("engine", ENGINES)
def test_by_position(engine: str) -> None:
    f = pb.julia_function("f", source="f(n, x) = sum(x[1:n])", engine=engine, static_argnums=0)
    assert [float(f(n, X)) for n in (3, np.int64(2), 3)] == [3.0, 1.0, 3.0]
    assert float(jax.jit(f, static_argnums=0)(4, X)) == 6.0
    last = pb.julia_function("f", source="f(x, n) = sum(x[1:n])", engine=engine, static_argnums=-1)
    assert float(last(X, 4)) == 6.0


@pytest.mark.parametrize("engine", ENGINES)
def test_by_keyword(engine: str) -> None:
    f = pb.julia_function("f", source="f(x; n = 2) = sum(x[1:n])", engine=engine, static_argnames="n")
    assert float(f(X)) == 1.0
    assert float(f(X, n=4)) == 6.0
    with pytest.raises(pb.ArgumentError, match=r"static_argnames=\('m',\)"):
        f(X, m=4)


@pytest.mark.parametrize(
    ("value", "julia"),
    [
        (-3, "-3"),
        (-(2**63), "typemin(Int64)"),
        (0.1, "0.1"),
        (-0.0, "-0.0"),
        (float("inf"), "Inf"),
        (float("nan"), "NaN"),
        (True, "true"),
        (np.True_, "true"),
        (1 - 2j, "1.0 - 2.0im"),
        ('a$b"\\\n\u00e9\u2603', r'"a\$b\"\\\n\u00e9\u2603"'),
        (None, "nothing"),
        ((), "()"),
        ((1, (2.5, "x")), '(1, (2.5, "x"))'),
    ],
)
def test_values(value: object, julia: str) -> None:
    f = pb.julia_function(
        "f", source=f"f(x, v) = v === {julia} ? x : zero(x)", engine="transpose", static_argnums=1
    )
    assert float(f(1.0, value)) == 1.0


def test_values_that_are_none_of_julias() -> None:
    f = pb.julia_function("f", source="f(x, v) = x", engine="transpose", static_argnums=1)
    for value in (2**63, frozenset(), jnp.sin):
        with pytest.raises(pb.ArgumentError, match="argument 1 is static and a"):
            f(1.0, value)
    with pytest.raises(pb.ArgumentError, match="must be hashable; a list is not"):
        f(1.0, [1])
    with pytest.raises(pb.ArgumentError, match="an array that JAX traces"):
        jax.jit(f)(1.0, 2)


@pytest.mark.parametrize("engine", ENGINES)
def test_in_place_with_a_promise_of_the_value(engine: str) -> None:
    f = pb.julia_function(
        "Inner.f!",
        source="module Inner\nf!(out, n, x) = (out .= x[1:n]; nothing)\nend",
        inplace=True,
        engine=engine,
        static_argnums=0,
        result=lambda n, x: jax.ShapeDtypeStruct((n,), x.dtype),
    )
    assert f(2, X).tolist() == [0.0, 1.0]
    assert f(3, X).tolist() == [0.0, 1.0, 2.0]


def test_of_base(tmp_path) -> None:
    f = pb.julia_function("reshape", static_argnums=(1, 2))
    assert f(jnp.arange(6.0), 2, 3).tolist() == [[0.0, 2.0, 4.0], [1.0, 3.0, 5.0]]
    with pytest.raises(pb.ArgumentError, match="no plain name"):
        pb.julia_function("+", static_argnums=1)(1.0, 2)


def test_of_a_file(tmp_path) -> None:
    file = tmp_path / "model.jl"
    file.write_text("head(x, n) = x[1:n]\n\nwrong(x, n) = error(n)  # the last line", encoding="utf-8")
    assert pb.julia_function("head", source=file, static_argnums=1)(X, 2).tolist() == [0.0, 1.0]
    with pytest.raises(pb.JuliaTracingError) as failure:
        pb.julia_function("wrong", source=file, engine="transpose", static_argnums=1)(X, 2)
    assert failure.value.source == "model.jl:3 (wrong)"


def test_derivatives_by_rules() -> None:
    source = """
    f(x, n, y; k = 1) = k * sum(x[1:n] .* y)
    function f_jvp((x, n, y), (dx, dn, dy); k = 1)
        @assert dn === nothing
        k * (sum(dx[1:n] .* y) + sum(x[1:n] .* dy))
    end
    function f_vjp((x, n, y), ct; k = 1)
        dx = zero(x)
        dx[1:n] .= k * ct .* y
        (dx, nothing, k * ct .* sum(x[1:n]))
    end
    """
    rules = {"jvp": "f_jvp", "vjp": "f_vjp"}
    f = pb.julia_function("f", source=source, static_argnums=1, static_argnames="k", **rules)
    slope, other = jax.grad(lambda x, y: f(x, 3, y, k=2), (0, 1))(X, 4.0)
    assert slope.tolist() == [8.0, 8.0, 8.0, 0.0, 0.0]
    assert float(other) == 6.0
    assert float(jax.jvp(lambda x: f(x, 3, 4.0), (X,), (jnp.ones_like(X),))[1]) == 12.0


def test_in_a_bridged_function_and_in_a_pickle() -> None:
    f = pb.julia_function("f", source="f(x, n) = sum(x[1:n] .^ 2)", engine="transpose", static_argnums=1)
    assert jax.grad(pb.bridge(f))(X, 3).tolist() == [0.0, 2.0, 4.0, 0.0, 0.0]
    assert float(pickle.loads(pickle.dumps(f))(X, 3)) == 5.0
    assert float(f.by("enzyme")(X, 3)) == 5.0


def test_an_integer_that_is_not_static_is_named() -> None:
    for code in ("sum(x[1:n])", "reshape(x, n, :)", "sum(x[i] for i in 1:n)"):
        f = pb.julia_function("f", source=f"f(x, n) = {code}", engine="transpose")
        with pytest.raises(
            pb.JuliaTracingError, match=r"integers that JAX passes are traced.*static_argnums=1 "
        ):
            f(X, 5)
        followed = pb.julia_function("f", source=f"f(x, n) = {code}", engine="transpose", static_argnums=1)
        followed(X, 5)


@pytest.mark.parametrize(
    ("refused", "followed", "result"),
    [
        ("x > 0 ? x^2 : -x", "select(x > 0, x^2, -x)", 9.0),
        ("x > 0 ? x^2 : -x", "JaxprAD.cond(x > 0, y -> y^2, y -> -y, x)", 9.0),
        ("(while x < 9; x = 2x; end; x)", "while_loop(y -> y < 9, y -> 2y, x)", 12.0),
    ],
)
def test_the_advice_about_control_flow_works(refused: str, followed: str, result: float) -> None:
    with pytest.raises(pb.JuliaTracingError, match="after `using JaxprAD` a source has `select`"):
        pb.julia_function("f", source=f"f(x) = {refused}", engine="transpose")(3.0)
    with pytest.raises(pb.JuliaTracingError, match="after `using JaxprAD` a source has `select`"):
        pb.julia_function("f", source=f"f(x) = {followed}", engine="transpose")(3.0)
    f = pb.julia_function("f", source=f"using JaxprAD\nf(x) = {followed}", engine="transpose")
    assert float(f(3.0)) == result
