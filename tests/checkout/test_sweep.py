"""The sweep measures each family, goes on where it stopped, and judges by the cost model of now."""

from __future__ import annotations

import dataclasses
import json

import jax
import pytest
from covering import some
from typer.testing import CliRunner

import pybridge as pb
from benchmarks.sweep.__main__ import app
from benchmarks.sweep.families import FAMILIES, Problem, problems
from benchmarks.sweep.measured import LEFT, NATIVE, XLA, Measurement, load, rates
from benchmarks.sweep.measuring import measure

SINES = pb.trace(jax.numpy.sin)(jax.ShapeDtypeStruct((100_000,), "float32"))


def sines(native: float, xla: float) -> Measurement:
    return Measurement("sin/f32/large/value", {NATIVE: native, XLA: xla}, (str(SINES),))


def test_each_problem_is_of_jax():
    names = [problem.name for problem in problems()]
    assert len(set(names)) == len(names)
    for problem in some([one for one in problems() if one.size == "small"], 80):
        with jax.enable_x64(problem.x64):
            results = jax.eval_shape(problem.function(lambda f: f), *problem.arguments())
        assert jax.tree.leaves(results), problem.name


@pytest.mark.parametrize(
    ("family", "dtype", "mode"),
    [("arithmetic", "f32", "value"), ("dot_square", "f64", "gradient"), ("gather_rows", "c64", "gradient")],
)
def test_problem_is_timed_both_ways(family, dtype, mode):
    measured = measure(Problem(FAMILIES[family], dtype, "small", mode))
    assert measured.failure == ""
    assert {NATIVE, XLA} <= measured.seconds.keys()
    assert all(0 < seconds < 1 for seconds in measured.seconds.values())
    assert measured.programs and measured.estimate.native > 0


def test_choice_is_wrong_where_it_is_slower_by_more_than_a_call():
    assert sines(1e-4, 1e-3).choice == NATIVE
    assert not sines(1e-4, 1e-3).is_wrong
    assert sines(2e-4, 1e-4).is_wrong
    assert not sines(3e-6, 1e-6).is_wrong
    assert Measurement("sin/f32/large/value", {XLA: 1e-3}, (str(SINES),)).choice == XLA


def test_gradient_left_to_xla_is_measured_for_itself():
    wide = dataclasses.replace(sines(2e-4, 1e-4), seconds={NATIVE: 2e-4, XLA: 1e-4, LEFT: 3e-4})
    assert not wide.is_wrong and wide.is_behind
    failed = Measurement("sin/f32/large/value", failure="no answer")
    assert not failed.is_wrong and not failed.is_behind


def test_rates_are_what_is_left_of_the_time():
    (rate,) = rates([sines(1e-3, 2e-3)])
    assert (rate.op, rate.dtype) == ("sin", "f32")
    assert rate.implied.native == pytest.approx(10, rel=0.1)
    assert rate.implied.xla == pytest.approx(20, rel=0.1)


def test_command_goes_on_where_it_stopped(tmp_path):
    path = tmp_path / "measured.jsonl"
    words = ["arithmetic", "--dtypes", "f32", "--sizes", "small", "--json", str(path)]
    done = CliRunner().invoke(app, words)
    assert done.exit_code in (0, 1), done.output
    assert {one.problem for one in load(path)} == {
        "arithmetic/f32/small/value",
        "arithmetic/f32/small/gradient",
    }
    assert not any(one.failure for one in load(path))
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:1], json.dumps({"problem": "arithmetic/f32/small/gradient"})]) + "\n")
    assert CliRunner().invoke(app, words).exit_code in (0, 1)
    assert len(path.read_text().splitlines()) == 2  # what is there is not measured again
    assert "XLA" in CliRunner().invoke(app, ["--fit", str(path)]).output
    assert "1 of 1" not in CliRunner().invoke(app, ["--load", str(path)]).output


def test_command_refuses_what_it_does_not_know():
    assert "no family 'cosine'" in str(CliRunner().invoke(app, ["cosine"]).exception)
