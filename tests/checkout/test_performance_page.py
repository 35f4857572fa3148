"""docs/performance.md shows the plan of an example as it is."""

from __future__ import annotations

import re
from pathlib import Path

import jax
import numpy as np
from typer.testing import CliRunner

import pybridge as pb
from pybridge.cli.app import app

ROOT = Path(__file__).parents[2]


def shown() -> list[str]:
    """The lines of the plan on the page, but for times and what it leaves out."""
    page = (ROOT / "docs" / "performance.md").read_text()
    (block,) = re.findall(r"^gradient_written: .*?\n\n(.*?)\n```", page, re.DOTALL | re.MULTILINE)
    return [line for line in block.splitlines() if line.strip() and "..." not in line]


def test_the_plan_is_the_one_on_the_page(monkeypatch):
    monkeypatch.chdir(ROOT)
    words = ["show", "--plan", "--derivative", "grad", "examples/epidemic.py:written"]
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    assert done.exit_code == 0
    lines = done.output.splitlines()
    assert len(shown()) > 10
    assert [line for line in shown() if line not in lines] == []


def test_both_ways_have_the_gradient_of_jax(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    import epidemic

    for f in (epidemic.written, epidemic.stacked):
        for rates in np.random.default_rng(7).uniform(0.1, 0.6, (3, 2)).astype(np.float32):
            found, expected = (jax.jit(jax.grad(g))(rates) for g in (pb.bridge(f), f))
            np.testing.assert_allclose(found, expected, rtol=2e-3)
