"""The zoo's watched rows have JAX's values, gradients and HVPs, each in a process of its own."""

from __future__ import annotations

import importlib.metadata
import re
import sys
import tomllib
from pathlib import Path

import jax
import pytest

from zoo.runner import run_one
from zoo.table import WATCHED, named

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LIMIT = 240.0  # seconds for a row, ten times what the slowest takes


def _packages(extra: str) -> set[str]:
    return {re.split(r"[^\w.-]", requirement)[0] for requirement in PROJECT["optional-dependencies"][extra]}


def _is_installed(distribution: str) -> bool:
    try:
        importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _reason_to_skip() -> str:
    """Why the rows cannot run here; empty if they have to.

    In the environment of `make setup` they have to, and elsewhere wherever a part of the extra is installed.
    """
    if jax.__version_info__ < (0, 12):
        return "the watched packages are pinned for JAX 0.12 and newer"
    by_make = Path(sys.prefix).resolve() == ROOT / ".venv"
    if by_make or any(map(_is_installed, _packages("watched") - _packages("dev"))):
        return ""
    return "the extra `watched` is not installed"


@pytest.mark.parametrize("name", WATCHED)
def test_a_row_agrees_with_jax(name, monkeypatch):
    if reason := _reason_to_skip():
        pytest.skip(reason)
    # For the row's process, which runs once what it compiles.
    monkeypatch.setenv("JAX_DISABLE_MOST_OPTIMIZATIONS", "true")
    problem = named(name)
    result = run_one(problem, Path(sys.executable), LIMIT, timed=False)
    assert result.complaints(problem.absent) == ()
    assert set(result.derivatives) == {"value", "gradient", "hvp"}


@pytest.mark.parametrize(
    ("prefix", "installed", "skips"),
    [
        (ROOT / ".venv", (), False),
        (ROOT / ".venv-other", (), True),
        (ROOT / ".venv-other", ("diffrax", "equinox"), True),  # which the extra `dev` has, too
        (ROOT / ".venv-other", ("jaxley",), False),
    ],
)
def test_rows_are_skipped_where_the_extra_is_missing(prefix, installed, skips, monkeypatch):
    monkeypatch.setattr(jax, "__version_info__", (0, 12, 0))
    monkeypatch.setattr(sys, "prefix", str(prefix))
    monkeypatch.setattr(sys.modules[__name__], "_is_installed", lambda name: name in installed)
    assert bool(_reason_to_skip()) == skips
