"""The examples do what they say."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

import pybridge as pb
from pybridge.comparison import count_equations

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _examples_can_be_imported(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "examples"))


def test_readme_commands_exist():
    text = (ROOT / "README.md").read_text()
    makefile = (ROOT / "Makefile").read_text()
    for target in set(re.findall(r"`?make (\w+)", text)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_seed_agrees():
    seed = importlib.import_module("seed")
    x, a = seed.example_args("f")
    assert x.shape == (32, 512, 64) and a.shape == (64,) and x.dtype == a.dtype == np.float32
    assert pb.compare(seed.f, x[:2], a, engines=["transpose"], repeats=0).agrees()


def test_data_parallel_fit_is_that_of_one_device():
    flags = {"PYTHONPATH": str(ROOT), "XLA_FLAGS": "--xla_force_host_platform_device_count=8"}
    example = [sys.executable, str(ROOT / "examples" / "data_parallel.py")]
    done = subprocess.run(example, env=os.environ | flags, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "8 devices" in done.stdout


def test_logistic_regression_reaches_the_optimum(capsys):
    example = importlib.import_module("logistic_regression")
    assert example.report()
    assert "the same optimum" in capsys.readouterr().out


def test_logistic_regression_notices_another_optimum(monkeypatch):
    example = importlib.import_module("logistic_regression")
    monkeypatch.setattr(example, "fit_by_scipy", lambda features, labels: np.zeros(features.shape[1]))
    assert not example.report()


def test_the_discussed_functions_come_down_to_one_gradient():
    demo = importlib.import_module("demo")
    discussion = importlib.import_module("discussion")
    counts = []
    for f in (discussion.plain, discussion.simplified):
        args = discussion.example_args(f.__name__)
        program = demo.gradient_program(f, args).optimize()
        np.testing.assert_allclose(
            program.to_jax()(*map(np.float32, args)), jax.grad(f, argnums=(0, 1))(*args), rtol=1e-5
        )
        jaxpr = jax.make_jaxpr(jax.grad(f, argnums=(0, 1)))(*args)
        counts.append((program.equation_count(), count_equations(jaxpr)))
    (plain, jax_plain), (simplified, jax_simplified) = counts
    assert plain == simplified < min(jax_plain, jax_simplified)


def test_an_exported_vjp_runs_without_pybridge_and_julia(tmp_path, monkeypatch):
    demo = importlib.import_module("demo")
    exported = pb.export(lambda x: x**3, ["cpu"])(np.ones(3, np.float32))
    (tmp_path / "cube").write_bytes(exported.serialize())
    (found,) = demo._run_elsewhere(tmp_path / "cube", (np.full(3, 2, np.float32),))
    np.testing.assert_array_equal(found, np.full(3, 8, np.float32))


def test_the_demo_fails_when_a_check_fails():
    demo = importlib.import_module("demo")
    checks = demo.Demo(demo.Console(quiet=True))
    checks.check("holds", True)
    checks.check("does not hold", False)
    assert checks.failed == ["does not hold"]
