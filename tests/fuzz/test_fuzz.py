"""The fuzzer finds what is wrong on purpose, makes it small, and finds nothing where all is well."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest
from typer.testing import CliRunner

import pybridge as pb
from pybridge.cli.app import app
from pybridge.fuzz import Settings, fuzz
from pybridge.fuzz.judging import judge
from pybridge.fuzz.making import MAKERS, at_random, programs, sample
from pybridge.fuzz.making.growing import Growth, Unfit
from pybridge.fuzz.reference import Expected, expected
from pybridge.fuzz.stages import Outcome
from pybridge.ir.parser import parse
from pybridge.ir.schema import OPERATIONS

HERE = Path(__file__).parent
MADE_BY_TRANSFORMATIONS = {"custom_vjp_tangent", "while_passes"}
OF_SYMBOLIC_SIZES = {"dim_size"}

TEXT = """pybridge 1
program f(%0: f32[4], %1: i32[]) {{
  %2: f32[4] = mul %0 %0
  %3: i32[] = add %1 1:i32
  %4: f32[4] = tanh %2
  %5: f32[4] = {op} %4
  %6: f32[4] = remat %5 %0 {{body=(%0: f32[4], %1: f32[4]) {{
    %2: f32[4] = mul %0 %1
    return %2
  }}, barrier=true}}
  %7: f32[4] = add %6 %5
  return %7 %3
}}
"""

SHORT = """pybridge 1
program f(%0: f32[4]) {{
  %1: f32[4] = {op} %0
  return %1
}}
"""
"""With little to shrink, as each question about a hang takes the whole time limit."""


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    """The engines of this folder, here and in child processes."""
    monkeypatch.syspath_prepend(str(HERE))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")]))


def run(folder, engine, ops, text=TEXT, **options):
    """Programs that have one of the primitives each."""
    samples = [at_random(parse(text.format(op=op)), k) for k, op in enumerate(ops)]
    options = {"seconds": 200.0, "timeout": 60.0, **options}
    settings = Settings((engine,), seed=0, folder=folder, most=len(samples), **options)
    return fuzz(settings, make=lambda _, number: samples[number])


def only(campaign):
    ((finding, path),) = campaign.findings.values()
    return finding, path


def test_a_wrong_derivative_is_found_shrunk_and_told_once(tmp_path):
    campaign = run(tmp_path, "faulty_engines:SKEWED", ["sin", "cos", "sin"])
    finding, path = only(campaign)
    assert campaign.programs == 3 and sum(campaign.duplicates.values()) == 1
    assert finding.failure.kind == "jvp" and finding.number == 0
    assert [eq.op for eq in finding.sample.program.equations] == ["sin"]
    assert len(finding.sample.program.inputs) == 1
    assert "3 Programs" in (tmp_path / "fuzz.log").read_text()
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 1 and "jvp in jvp: result 0: off by" in done.stdout, done.stdout + done.stderr


def test_a_process_that_dies(tmp_path):
    campaign = run(tmp_path, "faulty_engines:DYING", ["sin", "cos", "cos"])
    finding, path = only(campaign)
    assert finding.failure.kind == "crash" and "SIGABRT" in finding.failure.detail
    assert [eq.op for eq in finding.sample.program.equations] == ["cos"]
    assert campaign.programs == 3 and len(campaign.duplicates) == 1
    assert "cos %0" in path.read_text()


def test_a_process_that_hangs(tmp_path):
    campaign = run(tmp_path, "faulty_engines:HANGING", ["sin", "tan"], SHORT, timeout=6.0)
    finding, path = only(campaign)
    assert finding.failure.kind == "hang" and "no answer within 6 s" in finding.failure.detail
    assert [eq.op for eq in finding.sample.program.equations] == ["tan"]
    assert campaign.programs == 2 and "tan %0" in path.read_text()


def test_an_exception_is_one_finding_whatever_it_was_raised_by(tmp_path):
    campaign = run(tmp_path, "faulty_engines:RAISING", ["exp", "exp"])
    finding, _ = only(campaign)
    assert finding.failure.kind == "raises" and "no luck" in finding.failure.detail
    assert sum(campaign.duplicates.values()) == 1


def test_nothing_is_found_in_right_engines(tmp_path):
    settings = Settings(("jax", "transpose"), 400.0, 3, tmp_path, most=6, timeout=120.0)
    campaign = fuzz(settings)
    assert campaign.programs and not campaign.findings, [str(f) for f, _ in campaign.findings.values()]


def test_the_command(tmp_path):
    words = ["fuzz", "--engines", "jax", "--seconds", "100", "--programs", "2", "-o", str(tmp_path / "found")]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0 and "2 Programs in" in result.stdout, result.output
    assert "fuzzing" in result.stderr
    refused = CliRunner().invoke(app, ["fuzz", "--engines", "enzime"])
    assert refused.exit_code == 2 and "there is no engine 'enzime'" in refused.stderr


def test_a_seed_makes_the_same_programs():
    for number in range(3):
        first, again = sample(7, number), sample(7, number)
        assert str(first.program) == str(again.program)
        assert [x.tobytes() for x in first.inputs] == [x.tobytes() for x in again.inputs]
    assert str(sample(7, 0).program) != str(sample(8, 0).program)


def test_every_primitive_has_a_maker_and_the_makers_make_it():
    assert set(OPERATIONS) - set(MAKERS) == MADE_BY_TRANSFORMATIONS | OF_SYMBOLIC_SIZES
    assert set(MAKERS) <= set(OPERATIONS)
    with jax.enable_x64(True):
        missing = [op for op in MAKERS if not any(op in made(op, seed) for seed in range(40))]
    assert not missing


def made(op, seed):
    """The primitives in the Program that the maker adds to, nested ones too."""
    g = Growth(random.Random(seed), 2, programs._one)
    for type_ in programs._input_types(g.rng):
        g.input(type_)
    try:
        MAKERS[op](g)
    except Unfit:
        return set()
    return set(ops(g.program([])))


def ops(program):
    for eq in program.equations:
        yield eq.op
        for body in eq.bodies:
            yield from ops(body)


def test_random_programs_are_well_typed():
    for number in range(25):
        made = sample(11, number)
        assert pb.parse(made.program.to_text()) == made.program
        assert all(x.shape == t.shape for x, t in zip(made.inputs, made.program.input_types, strict=True))
        assert all(np.isfinite(x.astype(complex)).all() for x in made.inputs)


def test_the_reference_reaches_into_functions_with_a_transpose_of_their_own(x64):
    """Its noise is of the arguments, which those functions close over then."""
    text = """pybridge 1
    program f(%0: f32[4]) {
      %1: f32[4] = linear_call %0 %0 {residuals=1, call=(%0: f32[4], %1: f32[4]) {
        %2: f32[4] = mul %0 %1
        return %2
      }, transpose=(%0: f32[4], %1: f32[4]) {
        %2: f32[4] = mul %1 %0
        return %2
      }}
      return %1
    }"""
    found = expected(at_random(parse(text), 0))
    assert not found.failures
    (exact,), (moved,) = found.runs["value"][0], found.runs["value"][5]
    assert 0 < np.max(np.abs(moved - exact)) < 1e-5


def test_where_jax_has_no_jvp_a_vjp_may_be_refused_for_want_of_a_rule():
    """JAX never looks for a rule where the tangent is none in the end."""
    given = at_random(parse(SHORT.format(op="sin")), 0)
    y = tuple(np.sin(given.inputs))
    wanted = Expected({"value": [y], "vjp": [y]}, {"jvp": "NotImplementedError"}, 2.0**-23, True)
    refused = dict.fromkeys(("jvp", "vjp"), "UnsupportedPrimitive: sin: has no derivative with respect to x")
    assert judge(given, wanted, Outcome({"value": y}, refused), None) is None
    with_jvp = replace(wanted, runs={**wanted.runs, "jvp": [y]}, failures={})
    failure = judge(given, with_jvp, Outcome({"value": y}, refused), None)
    assert failure is not None and failure.kind == "raises"


def test_tangents_that_are_rounded_are_no_linear_function_of_what_they_were(x64):
    """JAX has no reverse mode of the loop: <u, Jv> is to be <J'u, v>, and is up to that rounding."""
    text = """pybridge 1
    program f(%0: f64[9], %1: f64[]) {
      %2: f64[] = while %1 {cond_consts=0, body_consts=0, bound=none, cond=(%0: f64[]) {
        %1: bool[] = gt %0 1.0:f64
        return %1
      }, body=(%0: f64[]) {
        %1: f64[] = mul %0 0.5:f64
        return %1
      }}
      %3: f64[9] = reduce_precision %0 {exponent_bits=8, mantissa_bits=10}
      return %3 %2
    }"""
    given = at_random(parse(text), 0)
    wanted = expected(given)
    assert set(wanted.failures) == {"vjp"}
    jvp, rounded = wanted.runs["jvp"][0], jax.jit(lambda x: jax.lax.reduce_precision(x, 8, 10))
    vjp = (np.asarray(rounded(given.cotangents[0])), jvp[1] / given.tangents[1] * given.cotangents[1])
    results = {"value": wanted.runs["value"][0], "jvp": jvp, "vjp": vjp}
    assert judge(given, wanted, Outcome(results), None) is None
    results["vjp"] = (vjp[0] * 1.5, vjp[1])
    failure = judge(given, wanted, Outcome(results), None)
    assert failure is not None and failure.kind == "vjp"
