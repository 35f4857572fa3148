"""Every private name of JAX that pybridge uses is there, and stands in one module."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path

import jax
import pytest

import pybridge as pb
from pybridge.frontend.adapter import internals

doctor = importlib.import_module("pybridge.api.doctor")  # `pybridge.api.doctor` is the function

PACKAGE = Path(pb.__file__).parent


def test_every_private_name_is_there():
    assert internals.missing() == []


def test_no_other_module_names_private_modules():
    private = re.compile(r"jax(lib)?\._src|from jax import _src")
    found = [
        path.relative_to(PACKAGE)
        for path in PACKAGE.rglob("*.py")
        if private.search(path.read_text()) and path != Path(internals.__file__)
    ]
    assert found == []


def test_every_name_in_the_table_is_used():
    text = "\n".join(path.read_text() for path in PACKAGE.rglob("*.py"))
    unused = [name for name in internals._PLACES if f"internals.{name}" not in text]
    assert unused == []


@pytest.fixture
def moved(monkeypatch):
    """A release of JAX that has moved the functions that describe dimensions."""
    monkeypatch.setitem(internals._PLACES, "is_dim", ("core:is_no_longer_here", "elsewhere:is_dim"))
    monkeypatch.delitem(vars(internals), "is_dim", raising=False)


def test_a_name_that_is_gone_is_named(moved):
    assert internals.missing() == ["is_dim: core:is_no_longer_here, elsewhere:is_dim"]
    with pytest.raises(pb.UnsupportedJax, match=r"jax\._src\.core:is_no_longer_here.*pip install"):
        pb.trace(lambda x: x + 1)(jax.numpy.ones(3))


def test_doctor_says_so(moved):
    row = doctor._jax()
    assert row.state == "broken" and "is_dim" in row.detail and "pip install" in row.remedy


def test_doctor_warns_of_a_newer_jax(monkeypatch):
    assert doctor._jax().state == "ok"
    monkeypatch.setattr(jax, "__version_info__", (internals.NEWEST[0], internals.NEWEST[1] + 1, 0))
    row = doctor._jax()
    assert row.state == "info" and "newer" in row.detail


def test_an_older_jax_is_refused_by_name():
    script = (
        "import jax\njax.__version_info__ = (0, 10, 0)\njax.__version__ = '0.10.0'\n"
        "import pybridge\npybridge.bridge"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert "UnsupportedJax: pybridge needs JAX 0.10.1 or newer, and this is 0.10.0" in done.stderr
