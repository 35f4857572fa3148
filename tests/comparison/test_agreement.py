"""Right engines agree, at every dtype and structure of arguments."""

from __future__ import annotations

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pybridge as pb

RNG = np.random.default_rng(0)
X = RNG.standard_normal((3, 4)).astype(np.float32)
A = RNG.uniform(0.5, 2, 4).astype(np.float32)
JULIA = ["transpose", "jax"]


def seed(x, a):
    return jnp.sin(a * x) ** 2 / a


def quick(f, *args, engines=("transpose",), **options):
    return pb.compare(f, *args, engines=engines, **{"repeats": 0, **options})


def test_seed_agrees_in_every_column():
    result = pb.compare(seed, X, A, engines=JULIA, repeats=3)
    assert result.agrees()
    assert [row.engine for row in result.rows] == JULIA
    for row in result.rows:
        assert row.state == "agrees" and not row.reasons
        assert max(row.value.relative, row.jvp.relative, row.vjp.relative) < 1e-5
        assert row.adjoint < 1e-5
        assert abs(row.taylor_jvp.order - 2) < 0.1 and abs(row.taylor_vjp.order - 2) < 0.1
        assert row.first_gradient > 0 and row.times.value > 0 and row.times.vjp_ratio > 0
    assert result.derivative == "right" and result.ok
    assert result["jax"].times.value_ratio == 1
    assert 0 < result["transpose"].equations < result["jax"].equations
    reference = result.reference
    assert reference.precision == "float64"
    assert reference.finite_difference < 1e-7 and reference.adjoint < 1e-12
    assert abs(reference.taylor_jvp.order - 2) < 0.1


def test_errors_are_against_float64_whether_or_not_it_is_on():
    off = quick(seed, X, A)
    with jax.enable_x64(True):
        on = quick(seed, X, A)
        double = quick(seed, X.astype(np.float64), A.astype(np.float64))
    assert off["jax"].vjp == on["jax"].vjp and off["jax"].vjp.relative > 1e-9
    assert double["transpose"].vjp.relative < 1e-12 and double.epsilon < 1e-15
    assert on.agrees() and double.agrees()


def test_pytrees_integers_and_python_numbers():
    def f(tree, index, scale):
        return {"picked": scale * jnp.exp(tree["a"])[index], "count": index + 1}, tree["b"].sum()

    result = quick(f, {"a": X, "b": A}, np.array([2, 0], np.int32), 2.0)
    assert result.agrees()
    assert result.arguments == "f32[3,4], f32[4], i32[2], f32[]"


def test_complex_numbers():
    z = (X + 1j * X[::-1]).astype(np.complex64)

    def f(z, x):
        return jnp.exp(1j * z) * x, jnp.abs(z) ** 2, jnp.conj(z).imag

    result = quick(f, z, X)
    assert result.agrees()
    assert result["transpose"].adjoint < 1e-5
    assert abs(result["transpose"].taylor_vjp.order - 2) < 0.1


def test_half_precision_has_its_own_tolerance():
    result = quick(seed, jnp.asarray(X, jnp.bfloat16), jnp.asarray(A, jnp.bfloat16))
    assert result.epsilon == 2.0**-7
    assert result.agrees()
    assert result["jax"].vjp.relative > 1e-4


def test_static_arguments_are_closed_over():
    result = quick(lambda x, n: x**n, X, 3, static_argnums=1)
    assert result.agrees() and result.arguments == "f32[3,4]"


def test_a_linear_function_has_no_remainder():
    result = quick(lambda x: 3 * x, X)
    assert result["transpose"].taylor_jvp.exact and str(result["transpose"].taylor_jvp) == "exact"
    assert result.agrees()


def test_nan_and_infinity_are_reported_not_punished():
    x = np.array([0.0, 1.0, -1.0], np.float32)
    result = quick(jnp.sqrt, x)
    row = result["transpose"]
    assert row.value.nonfinite == 1 and row.value.misplaced == 0
    assert row.vjp.nonfinite == 2 and row.vjp.misplaced == 0
    assert result.agrees()
    assert "NaN or infinite" in str(result)


def test_a_bridged_function_is_compared_by_what_it_bridges():
    assert quick(pb.bridge(seed), X, A)["jax"].equations == quick(seed, X, A)["jax"].equations


def test_a_rule_that_is_no_derivative_is_remarked_on():
    @jax.custom_jvp
    def passing(x):
        return jnp.sin(x)

    passing.defjvp(lambda primals, tangents: (jnp.sin(primals[0]), tangents[0]))
    result = quick(passing, X)
    assert result.agrees() and result.derivative == "wrong" and not result.ok
    assert abs(result.reference.taylor_jvp.order - 1) < 0.1
    assert "not that of its value" in " ".join(str(result).split())


def test_a_function_that_refuses_float64():
    def f(x):
        return jax.lax.mul(x, jnp.ones(x.shape, jnp.float32))

    result = quick(f, X)
    assert result.reference.precision == "as given"
    assert "does not run in float64" in " ".join(result.reference.notes)
    assert result.agrees()


def test_a_function_without_reverse_mode():
    def f(x):
        return jax.lax.while_loop(lambda s: jnp.sum(s) < 10, lambda s: 1.5 * s, x)

    result = quick(f, jnp.abs(X))
    assert result["transpose"].jvp.relative < 1e-5
    assert any("VJP" in reason for reason in result["jax"].reasons)
    assert result["jax"].state == "agrees" and not result["jax"].failed and result.ok


@pytest.mark.parametrize(("factor", "derivative"), [(1.0, "right"), (1.5, "wrong")])
def test_a_rule_without_a_jvp_is_judged_by_its_vjp(factor, derivative):
    @jax.custom_vjp
    def f(x):
        return jnp.sin(x)

    f.defvjp(lambda x: (jnp.sin(x), x), lambda x, ct: (factor * jnp.cos(x) * ct,))
    result = quick(f, X)
    assert result.agrees() and result.derivative == derivative and result.ok == (derivative == "right")
    assert json.loads(result.to_json())["derivative"] == derivative
    assert all(row.state == "agrees" and "JVP" in row.reasons[0] for row in result.rows)
    assert f"{'' if result.ok else 'not '}that of its value, by difference quotients" in str(result)


def test_an_rtol_that_is_given_is_no_more_than_that():
    def cancelling(x):
        return (1.0 + 1e-8 * x) - 1.0

    usual, given = quick(cancelling, X), quick(cancelling, X, rtol=1e-2)
    text = "value of result: relative error 1.0e+00"
    assert usual.agrees() and usual["transpose"].rounded == (text,) and "taken for rounding" in str(usual)
    assert not given.agrees() and given["transpose"].disagreements == (text,)
    assert not usual.agrees(rtol=1e-2)


def test_errors_in_units_of_the_condition():
    result = quick(lambda x, n: (x**10, n * 2.0), np.float32(1.7), np.ones(2, np.float32), order=2)
    found = result.reference.condition
    assert found["value"] == pytest.approx({"result[0]": 10, "result[1]": 1}, rel=1e-6)
    assert found["jvp"] == pytest.approx({"result[0]": 9, "result[1]": 1}, rel=1e-6)
    assert found["vjp"] == pytest.approx({"x": 9, "n": 1}, rel=1e-6)
    row = result["jax"]
    value = row.leaves["value"]["result[0]"]
    assert value.units == pytest.approx(value.relative / (10 * result.epsilon), rel=1e-6)
    by_x = row.leaves["forward over reverse"]["x"]
    assert by_x.units == pytest.approx(by_x.relative / (8 * result.epsilon), rel=1e-6)
    assert "κε" in str(result)


def test_what_loses_digits_stands_out_in_units_of_the_condition():
    right, cancelling = quick(seed, X, A), quick(lambda x: (1.0 + 1e-3 * x) - 1.0, X)
    assert right["transpose"].value.units < 5 and right["transpose"].vjp.units < 5
    assert cancelling["transpose"].value.units > 100 and cancelling["transpose"].vjp.units < 5


@pytest.mark.parametrize("isolate", [False, True])
def test_the_memory_of_a_gradient(isolate):
    result = quick(lambda x: jnp.sin(x).sum(), np.ones(1000, np.float32), isolate=isolate)
    # Of ours the gradient, and the argument for one that cannot be scaled.
    kept = {"transpose": 8000, "jax": 4000}
    for row in result.rows:
        assert row.memory.residuals == kept[row.engine] and 4000 <= row.memory.vjp < 13000
    assert json.loads(result.to_json())["rows"][0]["memory"]["residuals"] == 8000
    assert "4 kB" in str(result)


def test_a_function_without_a_gradient_has_no_memory_of_one():
    found = quick(lambda x: jax.lax.while_loop(lambda s: jnp.sum(s) < 10, lambda s: 1.5 * s, x), jnp.abs(X))
    assert found["jax"].memory is None


def test_json_holds_every_number(tmp_path):
    result = quick(jnp.sqrt, np.array([0.0, 1.0], np.float32))
    result.save_json(tmp_path / "c.json")
    data = json.loads((tmp_path / "c.json").read_text(), parse_constant=pytest.fail)
    assert data["agrees"] is True and data["reference"]["precision"] == "float64"
    assert [row["engine"] for row in data["rows"]] == ["transpose", "jax"]
    assert data["rows"][0]["vjp"]["nonfinite"] == 1


@pytest.mark.parametrize(
    ("f", "args", "error"),
    [
        (lambda x: x if x.sum() > 0 else -x, (X,), pb.TracingError),
        (lambda n: n + 1, (3,), pb.NotDifferentiable),
        (lambda x: x > 0, (X,), pb.NotDifferentiable),
        (lambda x: x, ("text",), pb.ArgumentError),
    ],
)
def test_what_cannot_be_compared_is_one_clear_exception(f, args, error):
    with pytest.raises(error):
        quick(f, *args)


def test_unknown_names():
    with pytest.raises(pb.UnknownOption, match=r"'enzime'.*'transpose'"):
        quick(seed, X, A, engines=["enzime"])
    with pytest.raises(pb.UnknownOption, match="candidate"):
        quick(seed, X, A, candidates={"jax": seed})
    with pytest.raises(KeyError, match="no engine 'enzime'"):
        quick(seed, X, A)["enzime"]
