"""The zoo's table names what there is, and whatever happens to a problem's process is its result."""

from __future__ import annotations

import ast
import dataclasses
import json
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

from zoo import page, runner
from zoo.environments import ENVIRONMENTS
from zoo.problem import Problem
from zoo.results import Derivative, Result, read
from zoo.table import PROBLEMS, WATCHED, named

ROOT = Path(__file__).resolve().parents[2]
RIGHT = Derivative(error=1e-12, agrees=True, first=1.0, jax_first=2.0, seconds=1e-3, jax_seconds=2e-3)


def test_every_row_is_a_function_of_its_module():
    assert len({p.name for p in PROBLEMS}) == len(PROBLEMS)
    for problem in PROBLEMS:
        source = (ROOT / "zoo" / "problems" / f"{problem.module}.py").read_text(encoding="utf-8")
        functions = [n.name for n in ast.parse(source).body if isinstance(n, ast.FunctionDef)]
        assert {problem.function, problem.hvp_of or problem.function} <= set(functions), problem.name


def test_every_package_is_required_in_each_environment():
    for folder in (ROOT / "zoo" / "requirements").iterdir():
        lines = "\n".join(file.read_text() for file in folder.glob("*.txt")).lower().splitlines()
        required = {line.split("==")[0] for line in lines}
        assert {p.distribution.lower() for p in PROBLEMS} <= required, folder.name


def test_watched_packages_have_the_same_version_in_the_extra_and_in_the_zoo():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pins = project["optional-dependencies"]["watched"]
    newest = ROOT / "zoo" / "requirements" / ENVIRONMENTS[0].requirements / "packages.txt"
    assert set(pins) <= set(newest.read_text().splitlines())
    assert {pin.split("==")[0] for pin in pins} == {named(name).distribution for name in WATCHED}


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "ended by SIGSEGV"),
        ("raise SystemExit(3)", "exited with status 3"),
        ("import time; time.sleep(60)", "no end within 2 s"),
        ("", ""),
    ],
)
def test_the_end_of_a_process(code, said, tmp_path):
    assert runner._wait([sys.executable, "-c", code], tmp_path / "said", 2.0, {}) == said


@pytest.mark.parametrize(
    ("derivative", "absent", "complains"),
    [
        (RIGHT, False, False),
        (dataclasses.replace(RIGHT, error=0.5, agrees=False), False, True),
        (Derivative(failure="UnsupportedPrimitive: x"), False, True),
        (Derivative(jax_failure="TypeError: y"), False, True),
        (Derivative(jax_failure="TypeError: y"), True, False),
        (dataclasses.replace(RIGHT, jax_failure="TypeError: y"), True, False),
        (Derivative(jax_failure="TypeError: y", error=0.5), True, True),
        (Derivative(jax_failure="TypeError: y", failure="UnsupportedPrimitive: x"), True, True),
        (Derivative(jax_first=1.0), True, True),  # the table says that there is none, and there is
    ],
)
def test_what_counts_as_working(derivative, absent, complains):
    result = Result("a.b").with_derivative("hvp", derivative)
    assert bool(result.complaints({"hvp": "a reason"} if absent else {})) == complains


def test_a_result_comes_back_from_json():
    result = Result("a.b", "1.0", "0.12", machine={"date": "today"}, end="").with_derivative("value", RIGHT)
    assert read(json.loads(json.dumps(dataclasses.asdict(result)))) == result


def test_the_page_keeps_its_text(tmp_path):
    file = tmp_path / "zoo.md"
    file.write_text("Before.\n<!-- zoo -->\nold\n<!-- end of zoo -->\nAfter.\n")
    problem = Problem("diffrax", "direct", "an equation", no_hvp="no reason")
    result = Result(problem.name, "0.7", "0.12", machine={"date": "today"})
    result = result.with_derivative("value", RIGHT).with_derivative("gradient", RIGHT)
    for _ in range(2):
        page.write(file, [problem], [{problem.name: result}])
    text = file.read_text()
    assert text.startswith("Before.\n<!-- zoo -->\n") and text.endswith("<!-- end of zoo -->\nAfter.\n")
    assert text.count("| diffrax | 0.7 | an equation | yes; no HVP by JAX: no reason | 2 (1 ms) |") == 1
    assert "old" not in text


def test_the_page_shows_what_jax_lacks():
    problem = Problem("diffrax", "direct", "an equation", no_hvp="no reason", hvp_of="another")
    ours = dataclasses.replace(RIGHT, jax_failure="TypeError: y", jax_first=None, jax_seconds=None)
    result = Result(problem.name, "0.7", "0.12").with_derivative("hvp", ours)
    assert "here alone (1 ms)" in page._cells(problem, result)


def test_errors_are_relative_to_the_largest_element_of_a_leaf():
    from zoo.worker import error

    right = {"a": np.array([1.0, 2.0]), "b": np.array([1e-3])}
    assert error(right, right) == 0
    assert error({"a": np.array([1.0, 2.2]), "b": np.array([1e-3])}, right) == pytest.approx(0.1)
    assert error({"a": np.array([1.0, 2.0]), "b": np.array([2e-3])}, right) == pytest.approx(1.0)
    assert error({"a": np.array([1.0, np.nan]), "b": np.array([1e-3])}, right) == float("inf")
