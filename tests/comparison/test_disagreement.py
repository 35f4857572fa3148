"""A comparison is worth what it notices: engines and candidates that are wrong on purpose."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pybridge as pb

X = np.random.default_rng(0).uniform(0.2, 1.2, (3, 4)).astype(np.float32)


def f(x):
    y = jnp.exp(0.5 * x)
    z = jnp.sin(x * y)
    return z * y + 1


def against(*names, **options):
    return pb.compare(f, X, engines=names, repeats=0, isolate=False, **options)


def test_a_tangent_that_is_too_large(engines):
    row = (result := against("tripled-sine"))["tripled-sine"]
    assert row.state == "disagrees" and not result.agrees()
    assert row.value.relative < 1e-5 and row.jvp.relative > 0.1 and row.vjp.relative > 0.1
    assert row.adjoint < 1e-5  # the two modes agree with each other, which therefore is not enough
    assert abs(row.taylor_jvp.order - 1) < 0.2 and abs(row.taylor_vjp.order - 1) < 0.2
    assert result["jax"].state == "agrees"


def test_a_cotangent_that_is_off_by_a_hundredth(engines):
    result = against("skewed-exponential")
    row = result["skewed-exponential"]
    assert row.state == "disagrees" and 1e-4 < row.vjp.relative < 0.1
    assert row.jvp is None and any(reason.startswith("JVP: TypeError") for reason in row.reasons)
    assert not result.agrees() and result.agrees(rtol=0.5)


def test_a_wrong_value(engines):
    row = against("shifted")["shifted"]
    assert row.state == "disagrees" and row.value.absolute == pytest.approx(1e-2, rel=1e-3)
    assert row.vjp.relative < 1e-5


def test_the_first_equation_that_differs_is_found(engines):
    result = against("tripled-sine")
    found = result.first_disagreement()
    assert "= sin " in found.equation and found.mode == "jvp"
    assert found.error == pytest.approx(2, rel=1e-3)
    assert "test_disagreement.py" in found.source and "(f)" in found.source
    assert found.source in str(found)


def test_a_failing_mode_leads_to_the_equation_too(engines):
    found = against("skewed-exponential").first_disagreement("skewed-exponential")
    assert "= exp " in found.equation and found.error is None and "TypeError" in found.reason


def test_nothing_differs_where_all_is_well(engines):
    result = against("transpose")
    assert result.first_disagreement() is None
    assert result.first_disagreement("transpose") is None


def test_candidates_have_rows_of_their_own():
    @jax.custom_vjp
    def right(x):
        return f(x)

    right.defvjp(lambda x: (f(x), x), lambda x, ct: jax.vjp(f, x)[1](ct))

    @jax.custom_vjp
    def wrong(x):
        return f(x)

    wrong.defvjp(lambda x: (f(x), x), lambda x, ct: (2 * ct,))
    result = against("jax", candidates={"by hand": right, "in haste": wrong})
    assert result["by hand"].vjp.relative < 1e-5 and result["by hand"].state != "disagrees"
    assert result["in haste"].state == "disagrees"
    assert abs(result["in haste"].taylor_vjp.order - 1) < 0.2
    assert result["by hand"].state == "agrees" and result.first_disagreement("by hand") is None
    found = result.first_disagreement()
    assert found.mode == "vjp" and found.leaf == "x" and found.error == result["in haste"].vjp.relative
    assert "test_disagreement.py" in found.source and found.source in str(found)
    assert result["in haste"].disagreements[0].startswith("VJP by x: relative error")
    assert "in haste disagrees: VJP by x" in str(result)


def test_errors_are_told_by_argument():
    @jax.custom_vjp
    def wrong(tree, y):
        return tree["a"] * tree["b"] * y

    wrong.defvjp(
        lambda tree, y: (wrong(tree, y), (tree, y)),
        lambda kept, ct: ({"a": ct * kept[0]["b"] * kept[1], "b": ct}, ct * kept[0]["a"] * kept[0]["b"]),
    )
    args = {"a": X, "b": 2 * X}, X + 1
    g = lambda tree, y: tree["a"] * tree["b"] * y  # noqa: E731
    row = pb.compare(g, *args, engines=["jax"], candidates={"c": wrong}, repeats=0)["c"]
    by_argument = row.leaves["vjp"]
    assert list(by_argument) == ["tree['a']", "tree['b']", "y"]
    assert by_argument["tree['b']"].relative > 0.1 > 1e-5 > by_argument["y"].relative
    off = [text.partition(":")[0] for text in row.disagreements if "relative error" in text]
    assert off == ["VJP by tree['b']"]


def test_a_candidate_of_another_shape():
    result = against("jax", candidates={"summed": lambda x: jnp.sum(f(x))})
    row = result["summed"]
    assert row.state == "failed" and "ArgumentError: the results have shapes" in " ".join(row.reasons)
    assert not result.agrees()


def test_a_candidate_that_is_right_in_its_value_is_off_in_a_derivative():
    """Of one result and one argument, which both disagree in a derivative: the value is not what is told."""
    x = jnp.array([-1.0, 0.0, 2.0])
    by_where = lambda x: jnp.sum(jnp.where(x > 0, x, 0.0))  # noqa: E731
    result = pb.compare(
        lambda x: jnp.sum(jnp.maximum(x, 0.0)), x, engines=["jax"], candidates={"where": by_where}, repeats=0
    )
    found = result.first_disagreement("where")
    assert (found.mode, found.leaf) == ("vjp", "x") and str(found).startswith("VJP by x (relative difference")
