"""The forms in which a comparison is shown, and the parts it is made of."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pybridge as pb
from pybridge.comparison import count_equations
from pybridge.comparison._timing import interleaved
from pybridge.engines import ENGINES

AFTER_JULIA = """
import sys
import jax.numpy as jnp, numpy as np
import pybridge as pb

result = pb.compare(jnp.sin, np.ones(3, np.float32), engines=["transpose"], repeats=2)
assert result["transpose"].state == "agrees"
result.plot(sys.argv[1] + ".png")
result.plot(sys.argv[1] + ".svg")
result.to_html(sys.argv[1] + ".html")
print(result)
"""


def test_pictures_and_pages_are_made_with_julia_in_the_process(tmp_path):
    """In a process of its own: libraries loaded after libjulia have been seen to abort (matplotlib's
    ft2font).
    """
    command = [sys.executable, "-c", AFTER_JULIA, str(tmp_path / "report")]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "report.png").read_bytes().startswith(b"\x89PNG")
    page = (tmp_path / "report.html").read_text()
    assert "<svg" in page and "transpose" in page and "src=" not in page
    lines = done.stdout.splitlines()
    assert lines[0] == "sin(f32[3]), seed 0"
    assert any(line.split()[:1] == ["transpose"] for line in lines)


SHORT = pb.compare(lambda x: x * 2.0, np.ones(3, np.float32), engines=["transpose"], repeats=1)


@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_no_number_is_cut_at_any_width(width):
    from rich.console import Console

    text = io.StringIO()
    Console(file=text, width=width, color_system=None).print(SHORT)
    shown = text.getvalue()
    assert "…" not in shown and max(map(len, shown.splitlines())) <= width
    numbers = [f"{SHORT['jax'].jvp.absolute:.1e}", "1.00 x jax", str(SHORT["jax"].equations)]
    assert all(number in shown for number in numbers)


def test_results_are_shown_short_in_a_shell_and_as_html_in_a_notebook():
    program = pb.trace(lambda x: jnp.sin(x) * 2)(np.ones(3, np.float32))
    assert repr(program) == "<Program lambda(f32[3]) -> (f32[3]), 2 equations>"
    shown = {
        "Program": program,
        "Linearization": program.linearize(),
        "Comparison": SHORT,
        "Report": pb.doctor(),
        "Check": pb.check(jnp.sin, 1.0),
    }
    for name, x in shown.items():
        assert repr(x).startswith(f"<{name} ") or repr(x).startswith(f"<{name}: "), repr(x)
        assert len(repr(x)) < 200 and "\n" not in repr(x)
        assert x._repr_html_().startswith("<pre") and "<script" not in x._repr_html_()


def test_a_report_is_shown_once_in_a_notebook(monkeypatch):
    """rich displays what it prints there, whatever file it prints to."""
    displayed = []
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    monkeypatch.setattr("rich.jupyter.display", lambda *given: displayed.append(given))
    for report in (SHORT, pb.doctor(), pb.check(jnp.sin, 1.0), pb.blame(jnp.sin, 1.0)):
        assert report._repr_html_() and str(report)
    assert not displayed


def test_equations_are_counted_inside_loops_and_calls():
    def f(x):
        return jax.lax.scan(lambda c, _: (jax.jit(jnp.sin)(c) * 2, None), x, length=3)[0]

    jaxpr = jax.make_jaxpr(f)(1.0)
    assert count_equations(jaxpr) == 3  # scan, sin, mul; the call of sin is none


def test_calls_are_timed_in_turns():
    order = []

    def call(name):
        order.append(name)
        return np.zeros(())

    quick = lambda: call("a")  # noqa: E731
    times = interleaved([quick, lambda: call("b")], rounds=2, budget=10.0)
    assert len(times) == 2 and all(t > 0 for t in times)
    runs = [name for i, name in enumerate(order) if i == 0 or order[i - 1] != name]
    assert runs == ["a", "b"] * 3  # once to see how long each takes, then twice


def test_an_engine_that_is_missing_is_reported_as_text(monkeypatch):
    missing = dataclasses.replace(
        ENGINES["enzyme-jax"], unavailable=lambda: pb.EngineUnavailable("no such package")
    )
    monkeypatch.setitem(ENGINES, "enzyme-jax", missing)
    report = json.loads(
        pb.compare(lambda x: x * 2.0, 1.0, engines=["jax", "enzyme-jax"], repeats=1).to_json()
    )
    assert "no such package" in json.dumps(report)
