"""Second derivatives, by each nesting of forward and reverse mode, and what notices that one is wrong."""

from __future__ import annotations

import io
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rich.console import Console

import pybridge as pb
from pybridge.engines import ENGINES, Engine

NESTINGS = ["forward over reverse", "reverse over forward", "reverse over reverse"]
X = np.random.default_rng(0).uniform(0.2, 1.2, (3, 4)).astype(np.float32)


def f(x):
    y = jnp.exp(0.5 * x)
    return jnp.sin(x * y) * y + 1


def second(f, *args, engines=("jax",), **options):
    return pb.compare(f, *args, engines=engines, order=2, **{"repeats": 0, "isolate": False, **options})


@pytest.fixture
def engine(monkeypatch):
    def made(apply, **options):
        monkeypatch.setitem(ENGINES, "tried", Engine("tried", apply, lambda: None, ("xla",), **options))

    return made


def right(program, arrays, options):
    return program.to_jax()(*arrays)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64])
def test_jax_and_its_reference(dtype, x64):
    result = second(f, X.astype(dtype) if dtype != np.complex64 else X + 0.1j * X[::-1])
    row, reference = result["jax"].second, result.reference.second
    assert list(row.errors) == NESTINGS and not row.cannot
    limit = 1e-12 if dtype == np.float64 else 1e-5
    assert max(e.relative for e in row.errors.values()) < limit and row.symmetry < limit
    assert abs(row.taylor.order - 3) < 0.1 and abs(reference.taylor.order - 3) < 0.1
    assert reference.symmetry < 1e-12 and reference.finite_difference < 1e-7
    assert reference.derivative == "right"


def test_the_reference_is_the_hessian():
    """That of a function whose Hessian is known: exact products, for one that is no more than they."""
    a = np.random.default_rng(1).standard_normal((4, 4)).astype(np.float32)

    @jax.custom_jvp
    def gradient(x):
        return (a + a.T) @ x

    gradient.defjvp(lambda xs, vs: (gradient(xs[0]), (a + a.T) @ vs[0]))

    @jax.custom_jvp
    def by_hand(x):
        return x @ a @ x

    by_hand.defjvp(lambda xs, vs: (by_hand(xs[0]), gradient(xs[0]) @ vs[0]))
    result = second(lambda x: x @ a @ x, X[0], candidates={"by hand": by_hand})
    assert result.agrees() and max(e.relative for e in result["by hand"].second.errors.values()) < 1e-6
    assert result["by hand"].second.taylor.exact and result.reference.second.taylor.exact


def test_linear_functions_have_none_to_be_wrong():
    result = second(lambda x: 3 * x, X, candidates={"the same": lambda x: x + 2 * x})
    row = result["the same"].second
    assert result.agrees() and result.ok and row.symmetry == 0 and row.taylor.exact
    assert all(e.absolute == 0 for e in row.errors.values())


@jax.custom_jvp
def once(x):
    return jnp.sin(x)


once.defjvp(
    lambda xs, vs: (once(xs[0]), jnp.cos(jax.lax.stop_gradient(xs[0])) * vs[0])
)  # no derivative after the first


def test_an_engine_that_is_wrong_in_the_second_order_alone(engine):
    def apply(program, arrays, options):
        results = right(program, arrays, options)
        ops = [eq.op for eq in program.equations]
        return [once(*arrays)] if ops == ["sin"] else results

    engine(apply)
    first = pb.compare(jnp.sin, X, engines=["tried"], repeats=0)
    assert first.agrees() and first["tried"].second is None
    result = second(jnp.sin, X, engines=["tried"])
    row = result["tried"]
    assert row.state == "disagrees" and not result.ok and result.reference.second.derivative == "right"
    assert abs(row.second.taylor.order - 2) < 0.1 and row.second.symmetry == 0
    told = "; ".join(row.disagreements)
    assert all(f"HVP ({nesting}) by x: relative error 1.0e+00" in told for nesting in NESTINGS)
    assert "HVP: its Taylor order is 2.00, that of the reference 3.0" in told
    assert result["jax"].state == "agrees" and result.first_disagreement() is None


def test_a_rule_of_the_functions_own_that_has_a_wrong_second_derivative(engine):
    engine(right)
    result = second(lambda x: once(x) * x, X, engines=["tried"])
    assert result.agrees() and result.derivative == "right"
    assert result.reference.second.derivative == "wrong" and not result.ok
    assert abs(result.reference.second.taylor.order - 2) < 0.1
    assert "Second derivative: not that of the first" in str(result)
    from pybridge.testing import assert_derivatives_agree

    with pytest.raises(AssertionError, match=r"second derivative of .* is not that of its first"):
        assert_derivatives_agree(once, (X,), engines=["tried"])


def test_a_derivative_that_is_no_gradient_has_no_symmetric_second_derivative():
    @jax.custom_vjp
    def turning(x):
        return jnp.sum(x**2)

    turning.defvjp(lambda x: (turning(x), x), lambda x, ct: (ct * (2 * x + jnp.roll(x, 1)),))
    row = second(lambda x: jnp.sum(x**2), X[0], candidates={"turning": turning})["turning"]
    assert row.second.symmetry > 0.1 and any("<w,Hv> and <v,Hw> differ" in d for d in row.disagreements)


def test_a_nesting_that_does_not_exist_is_no_failure():
    @jax.custom_vjp
    def sine(x):
        return jnp.sin(x)

    sine.defvjp(lambda x: (jnp.sin(x), x), lambda x, ct: (ct * jnp.cos(x),))
    result = second(jnp.sin, X, candidates={"by hand": sine})
    row = result["by hand"]
    assert row.state == "agrees" and not row.failed
    assert list(row.second.errors) == ["forward over reverse", "reverse over reverse"]


def test_an_engine_of_first_derivatives_cannot_and_does_not_fail(engine):
    engine(right, orders=1)
    result = second(f, X, engines=["tried"])
    row = result["tried"]
    assert result.ok and row.state == "agrees" and row.second.cannot and not row.second.errors
    assert not row.reasons and "tried cannot: it has first derivatives alone." in str(result)
    assert ENGINES["enzyme-jax"].orders == 1


def test_a_second_derivative_that_fails_is_a_failure(engine):
    @jax.custom_jvp
    def slope(x):
        return jnp.cos(x)

    def refuse(xs, vs):
        raise RuntimeError("once is enough")

    slope.defjvp(refuse)

    @jax.custom_jvp
    def sine(x):
        return jnp.sin(x)

    sine.defjvp(lambda xs, vs: (sine(xs[0]), slope(xs[0]) * vs[0]))
    engine(lambda program, arrays, options: [sine(*arrays)])
    result = second(jnp.sin, X, engines=["tried"])
    row = result["tried"]
    assert row.state == "failed" and row.vjp.relative < 1e-6 and not row.second.errors
    assert "HVP forward over reverse" in " ".join(row.reasons) and "once is enough" in " ".join(row.reasons)


def test_julia_in_a_process_of_its_own_with_trees_and_integers():
    def g(tree, index):
        return {"picked": jnp.exp(tree["a"])[index] * tree["b"], "count": index + 1}

    args = {"a": X, "b": X[0]}, np.array([2, 0], np.int32)
    result = second(g, *args, engines=["transpose"], isolate=True)
    row = result["transpose"]
    assert row.isolated and result.ok and list(row.second.errors) == NESTINGS
    assert list(row.leaves["reverse over forward"]) == ["tree['a']", "tree['b']"]
    assert row.second.symmetry < 1e-5 and abs(row.second.taylor.order - 3) < 0.1


@pytest.mark.parametrize("width", [80, 120])
def test_the_table_is_cut_nowhere(engine, width):
    engine(right, orders=1)
    result = second(f, X, engines=["tried"])
    text = io.StringIO()
    Console(file=text, width=width, color_system=None).print(result)
    shown = text.getvalue()
    errors = result["jax"].second.errors
    assert max(map(len, shown.splitlines())) <= width and shown.count("cannot") == 4
    assert all(f"{errors[nesting].absolute:.1e}" in shown for nesting in NESTINGS)
    data = json.loads(result.to_json())
    assert data["rows"][0]["second"]["cannot"] and data["reference"]["second"]["derivative"] == "right"


def test_an_order_that_is_not_there():
    with pytest.raises(pb.UnknownOption, match="1 or 2"):
        pb.compare(f, X, order=3)
