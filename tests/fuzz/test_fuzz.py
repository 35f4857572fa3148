"""The fuzzer finds what is wrong on purpose, makes it small, and finds nothing where all is well."""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest
from covering import FULL
from typer.testing import CliRunner

import pybridge as pb
from pybridge.cli.app import app
from pybridge.fuzz import Settings, fuzz
from pybridge.fuzz.judging import judge
from pybridge.fuzz.making import MAKERS, at_random, control, programs, sample
from pybridge.fuzz.making.growing import Growth, Unfit
from pybridge.fuzz.reference import Expected, expected
from pybridge.fuzz.shrinking import shrunk
from pybridge.fuzz.stages import Outcome
from pybridge.ir.numerals import DTYPES, dtype_name, is_inexact
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

MIDDLE = """pybridge 1
program f(%0: f32[4]) {{
  %1: f32[4] = mul %0 %0
  %2: f32[4] = {op} %1
  return %2
}}
"""
"""With less to shrink, as each question about a crash takes a new process."""

SHORT = """pybridge 1
program f(%0: f32[4]) {{
  %1: f32[4] = {op} %0
  return %1
}}
"""
"""With little to shrink, as each question about a hang takes the whole time limit."""

PATIENCE = 5.0  # seconds


@pytest.fixture(scope="module", autouse=True)
def importable():
    """The engines of this folder, here and in child processes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(HERE))
        patch.setenv("PYTHONPATH", os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")]))
        yield


@pytest.fixture(scope="module")
def campaign(importable, tmp_path_factory):
    """Of an engine with each kind of fault: Programs that have one of its primitives each."""
    texts = [(TEXT, "sin"), (TEXT, "exp"), (MIDDLE, "cos")]
    texts += [(SHORT, op) for op in ("sin", "tanh", "exp", "cos", "tan")]
    samples = [at_random(parse(text.format(op=op)), k) for k, (text, op) in enumerate(texts)]
    hanging = samples[-1]  # its inputs alone are left to be made simpler
    ones = [tuple(map(np.ones_like, arrays)) for arrays in (hanging.tangents, hanging.cotangents)]
    samples[-1] = replace(hanging, tangents=ones[0], cotangents=ones[1])
    settings = Settings(
        ("faulty_engines:FAULTY",),
        seconds=200.0,
        seed=0,
        folder=tmp_path_factory.mktemp("found"),
        most=len(samples),
        timeout=PATIENCE,
    )
    return fuzz(settings, make=lambda _, number: samples[number])


def only(campaign, kind):
    """The one finding of a kind, its file, and how often it was found again."""
    found = {key: pair for key, pair in campaign.findings.items() if pair[0].failure.kind == kind}
    ((key, (finding, path)),) = found.items()
    return finding, path, campaign.duplicates.get(key, 0)


def test_each_fault_is_found_once(campaign):
    assert campaign.programs == 8 and len(campaign.findings) == 4 and len(campaign.duplicates) == 3


def test_a_wrong_derivative_is_found_shrunk_and_told_once(campaign):
    finding, path, again = only(campaign, "jvp")
    assert finding.number == 0 and again == 1
    assert [eq.op for eq in finding.sample.program.equations] == ["sin"]
    assert len(finding.sample.program.inputs) == 1
    assert "8 Programs" in (path.parent / "fuzz.log").read_text()
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 1 and "jvp in jvp: result 0: off by" in done.stdout, done.stdout + done.stderr


def test_a_process_that_dies(campaign):
    finding, path, again = only(campaign, "crash")
    assert "SIGABRT" in finding.failure.detail and again == 1
    assert [eq.op for eq in finding.sample.program.equations] == ["cos"]
    assert "cos %0" in path.read_text()


def test_a_process_that_hangs(campaign):
    finding, path, again = only(campaign, "hang")
    assert f"no answer within {PATIENCE:g} s" in finding.failure.detail and again == 0
    assert [eq.op for eq in finding.sample.program.equations] == ["tan"]
    assert "tan %0" in path.read_text()
    assert all(np.all(x == 1) for x in finding.sample.inputs)


def test_an_exception_is_one_finding_whatever_it_was_raised_by(campaign):
    finding, _, again = only(campaign, "raises")
    assert "no luck" in finding.failure.detail and again == 1


def test_nothing_is_found_in_right_engines(tmp_path):
    settings = Settings(("jax", "transpose"), 400.0, 3, tmp_path, most=6 if FULL else 2, timeout=120.0)
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
        assert [x.dtype for x in made.inputs] == [DTYPES[t.dtype] for t in made.program.input_types]
        ordinary = at_random(made.program, number).inputs
        assert all(np.isfinite(x.astype(complex)).all() for x in ordinary)


def test_samples_are_at_ordinary_large_special_and_equal_numbers():
    inputs = [x for n in range(60) for x in sample(5, n).inputs]
    arrays = [x.astype(complex) for x in inputs if is_inexact(dtype_name(x.dtype))]
    finite = [x for x in arrays if x.size and np.isfinite(x).all()]
    assert len(arrays) / 2 < len(finite) < len(arrays)
    assert any(np.abs(x).max() > 1e6 for x in finite) and any(np.abs(x).max() < 1e-6 for x in finite)
    assert any(x.size > 3 and np.array_equal(2 * x, np.round(2 * x)) for x in finite)
    assert any(np.isnan(x).any() for x in arrays)


def test_counters_of_loops_wrap_around_at_times():
    found = []
    for seed in range(200):
        with contextlib.suppress(Unfit):
            c = control._counter(Growth(random.Random(seed), 0, programs._one))
            found.append(c.start + c.trips * c.step > np.iinfo(DTYPES[c.type_.dtype]).max)
    assert any(found) and not all(found)


ENDLESS = """pybridge 1
program endless(%0: f32[3]) {
  %1: f32[3] = while %0 {cond_consts=0, body_consts=0, bound=none, cond=(%0: f32[3]) {
    %1: bool[] = lt 0:i32 1:i32
    return %1
  }, body=(%0: f32[3]) {
    %1: f32[3] = sin %0
    return %1
  }}
  return %1
}
"""


def test_engines_end_with_the_process_that_asks_them(tmp_path):
    code = f"""
import pathlib, time
from pybridge.fuzz.children import Child
from pybridge.fuzz.making import at_random
from pybridge.ir.parser import parse
child = Child("reference", 60.0, pathlib.Path({str(tmp_path)!r}), lambda: None)
child._send(at_random(parse({ENDLESS!r}), 0))
time.sleep(3)
print(child._process.pid, flush=True)
time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as asking:
        assert asking.stdout is not None
        child = int(asking.stdout.readline())
        assert _runs(child)
        asking.kill()
    until = time.monotonic() + 30
    while _runs(child) and time.monotonic() < until:
        time.sleep(0.2)
    assert not _runs(child)


def _runs(process: int) -> bool:
    """A process that has ended and that nobody waits for is a zombie."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{process}/stat")
    return not status.exists() or status.read_text().rpartition(")")[2].split()[0] != "Z"


def test_loops_that_are_made_smaller_still_end():
    text = """pybridge 1
program counted(%0: f32[7]) {
  %1: i8[], %2: f32[7] = while 3:i8 %0 {cond_consts=0, body_consts=0, bound=none,
   cond=(%0: i8[], %1: f32[7]) {
    %2: bool[] = lt %0 90:i8
    return %2
  }, body=(%0: i8[], %1: f32[7]) {
    %2: f32[7] = sin %1
    %3: f32[7] = mul %2 2.0:f32
    %4: i8[] = add %0 50:i8
    return %4 %3
  }}
  return %2
}
"""
    asked = []

    def fails(candidate):
        (loop,) = candidate.program.equations
        asked.append([e.op for e in loop.attrs["body"].equations])
        return len(asked[-1]) < 3

    shrunk(at_random(parse(text), 0), fails)
    assert ["add"] in asked and all("add" in ops for ops in asked) and len(asked) < 20


def test_some_rules_are_not_linear_in_their_cotangent():
    with jax.enable_x64(True):
        found = set().union(*(made("custom_vjp", seed) for seed in range(40)))
    assert {"tanh", "max", "min"} <= found


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


def test_a_transform_of_what_is_not_finite_may_be_finite_or_not(x64):
    """By real transforms of half the length the whole line is NaN, by others some of it is."""
    text = """pybridge 1
    program f(%0: c128[2,13]) {
      %1: f64[2,24] = fft %0 {fft_type=irfft, fft_lengths=[24]}
      return %1
    }"""
    given = at_random(parse(text), 0)
    given.inputs[0][0, 5] = complex(1, np.nan)
    wanted = expected(given)
    y, *others = wanted.runs["value"][0]
    assert not others and np.isnan(y[0]).all() and np.isfinite(y[1]).all()
    assert np.isfinite(np.fft.irfft(given.inputs[0], 24)[0, 0])


def test_a_decomposition_of_what_is_not_finite_may_be_finite_or_not(x64):
    text = """pybridge 1
    program f(%0: f64[2,5,5]) {
      %1: f64[2,5,5], %2: f64[2,5], %3: f64[2,4], %4: f64[2,4] = tridiagonal %0 {lower=true}
      return %4
    }"""
    given = at_random(parse(text), 0)
    given.inputs[0][0, 3, 2] = given.inputs[0][0, 2, 3] = np.nan
    (taus,) = expected(given).runs["value"][0]
    assert np.isnan(taus[0]).all() and np.isfinite(taus[1]).all()
