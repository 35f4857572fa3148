"""`blame`: seeded faults are found at their line, equation and trip, and healthy functions have none."""

from __future__ import annotations

import json
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import seeded_faults
from cases import DIFFERENTIABLE
from covering import FULL
from seeded_faults import FAULTS, Fault

import pybridge as pb


def chain(found):
    while found is not None:
        yield found
        found = found.cause


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.f.__name__)
def test_faults_are_located(fault: Fault):
    found = pb.blame(fault.f, *fault.args)
    assert not found.ok
    line = f"seeded_faults.py:{fault.line} "
    if fault.stage == "rounding":
        assert not found.nonfinite, found
        worst = found.rounding.charges[0]
        assert line in worst.source and worst.op == fault.op and worst.place == fault.place, found
        assert found.rounding.cancellations
        assert found.rounding.cancellations[0].condition > 100
        return
    born = next(n for n in found.nonfinite if n.stage == fault.stage)
    assert any(line in n.source and n.op == fault.op and n.place == fault.place for n in chain(born)), found
    assert any(fault.says in n.way_out for n in chain(born)), found


def test_the_operands_are_shown():
    (born,) = (n for n in pb.blame(seeded_faults.late_guard_of_sqrt, np.zeros(2, np.float32)).nonfinite)
    assert {o.value for o in born.operands} == {"0", "inf"}
    assert born.cause.kind == "inf" and born.cause.op == "div"


def test_rounding_under_a_rule_is_that_of_the_algorithm():
    found = pb.blame(seeded_faults.rounding_under_a_rule, np.float32(0.3))
    assert not found.ok and found.rounding.charges[0].op == "add"


def test_infinite_arguments_are_named():
    (born, *_) = pb.blame(lambda x: x * 2.0, np.array([1.0, np.inf], np.float32)).nonfinite
    assert born.equation == "x" and "from the beginning" in born.way_out


def test_what_is_infinite_on_the_way_alone_is_not_blamed():
    def masked_softmax(x):
        return jax.nn.softmax(jnp.where(jnp.arange(4) < 2, x, -jnp.inf))

    assert pb.blame(masked_softmax, np.arange(4, dtype=np.float32)).ok
    logistic = pb.blame(lambda x: 1 / (1 + jnp.exp(-x)), np.float32(-200.0))
    assert {born.stage for born in logistic.nonfinite} == {"JVP", "VJP"}


def test_a_while_loop_has_no_vjp_and_still_a_bound():
    def newton(x):
        return jax.lax.while_loop(lambda s: s[1] < 20, lambda s: ((s[0] + x / s[0]) / 2, s[1] + 1), (x, 0))[0]

    found = pb.blame(newton, np.float32(2))
    assert found.ok and any("no VJP" in note for note in found.notes)
    assert found.rounding.measured <= found.rounding.coarse_bound < 1e-4


def test_while_loops_inside_loops():
    def roots(x):
        def body(c, k):
            step = lambda s: ((s[0] + c / s[0]) / 2, s[1] + 1)  # noqa: E731
            return c + jax.lax.while_loop(lambda s: s[1] < k, step, (c, 0))[0], None

        return jax.lax.scan(body, x, jnp.arange(3, 20))[0]

    found = pb.blame(roots, np.float32(2))
    assert found.ok and found.rounding.measured <= found.rounding.coarse_bound


def test_infinite_slopes_are_no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = pb.blame(lambda x: jnp.sum(jnp.sqrt(x)), np.array([0, 1], np.float32))
    assert not found.ok


def test_reports(tmp_path):
    found = pb.blame(seeded_faults.cancellation, np.float32(0.3))
    assert len(repr(found)) < 120 and "rounding" in repr(found)
    assert "Cancellation" in str(found) and "Cancellation" in found._repr_html_()
    assert json.loads(found.to_json())["rounding"]["charges"][0]["op"] == "add"
    assert "| `" in found.to_markdown()
    found.to_html(tmp_path / "a.html")
    found.save_json(tmp_path / "a.json")
    assert "<html" in (tmp_path / "a.html").read_text() and (tmp_path / "a.json").stat().st_size
    born = pb.blame(seeded_faults.late_guard_of_sqrt, np.zeros(2, np.float32))
    assert "way out" in born.to_markdown() and not json.loads(born.to_json())["ok"]


def test_static_arguments_and_keys():
    def noisy(key, x, power):
        return jnp.sum(jax.random.normal(key, x.shape) * x**power)

    x = np.linspace(1, 2, 5).astype(np.float32)
    assert pb.blame(noisy, jax.random.key(0), x, 2, static_argnums=2).ok


def test_nothing_to_differentiate():
    with pytest.raises(pb.NotDifferentiable):
        pb.blame(lambda n: n + 1, 3)


# Indices out of range, which are filled with NaN, and windows of nothing but padding.
NOT_FINITE = {"gather_fill", "gather_points", "reduce_window_max_gaps", "reduce_window_min_gaps"}

HEALTHY = [
    case
    for case in DIFFERENTIABLE
    if case.name.endswith(("/f32", "/f64")) and case.name.split("/")[0] not in NOT_FINITE
][:: 12 if FULL else 48]


@pytest.mark.parametrize("case", HEALTHY, ids=str)
def test_healthy_functions_are_not_blamed(case):
    with case.context():
        inputs = case.inputs()

        def f(*active):
            given = dict(zip(case.active, active, strict=True))
            return case.f(*(given.get(i, x) for i, x in enumerate(inputs)))

        assert pb.blame(f, *(inputs[i] for i in case.active)).ok
