"""A JAX that computes wrong numbers is named, once."""

from __future__ import annotations

import importlib
import tomllib
import warnings
from pathlib import Path

import jax
import pytest
from packaging.requirements import Requirement

import pybridge as pb
from pybridge.frontend.adapter import faults, internals

doctor = importlib.import_module("pybridge.api.doctor")  # `pybridge.api.doctor` is the function
ROOT = Path(__file__).parents[3]


@pytest.fixture
def wrong(monkeypatch):
    """JAX 0.10.2, as far as its version tells."""
    monkeypatch.setattr(jax, "__version_info__", (0, 10, 2))
    monkeypatch.setattr(jax, "__version__", "0.10.2")
    faults.warn_once.cache_clear()
    yield
    faults.warn_once.cache_clear()


def test_the_first_bridge_warns(wrong):
    with pytest.warns(RuntimeWarning, match=r"JAX 0\.10\.2.*jax issue 39103.*pip install") as told:
        pb.bridge(abs)
        pb.bridge(abs)
    assert len(told) == 1 and told[0].filename == __file__


def test_a_decorator_warns_too(wrong):
    with pytest.warns(RuntimeWarning, match="jax issue 39103"):

        @pb.bridge(engine="jax")
        def f(x):
            return x


def test_doctor_says_so(wrong):
    row = doctor._jax()
    assert row.state == "broken" and "jax issue 39103" in row.detail and "!=0.10.2" in row.remedy


def test_others_are_not_warned_of():
    if faults.fault() is None:
        faults.warn_once.cache_clear()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            pb.bridge(abs)


def test_pip_takes_all_that_is_supported_and_no_version_with_a_fault():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    required = {r.name: r.specifier for r in map(Requirement, project["dependencies"])}
    for name in ("jax", "jaxlib"):
        versions = required[name]
        assert not [fault for fault in faults._FAULTS if ".".join(map(str, fault)) in versions]
        assert ".".join(map(str, internals.OLDEST)) in versions and "0.10.0" not in versions
    pins = (ROOT / "tests" / "oldest.txt").read_text()
    oldest = ".".join(map(str, internals.OLDEST))
    assert f"jax=={oldest}\n" in pins and f"jaxlib=={oldest}\n" in pins
