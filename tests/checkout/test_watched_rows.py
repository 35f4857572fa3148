"""The zoo's watched rows have JAX's values, gradients and HVPs, each in a process of its own."""

from __future__ import annotations

import importlib.metadata
import re
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

import jax
import pytest

from zoo.results import Derivative, Result
from zoo.runner import run_one
from zoo.table import WATCHED, named

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LIMIT = 240.0  # seconds for a row, ten times what the slowest takes


class KnownFailure(NamedTuple):
    """complaints: how each complaint of the row begins. reason: what is wrong."""

    complaints: tuple[str, ...]
    reason: str


KNOWN_FAILURES = {
    "diffrax.ensemble": KnownFailure(
        (
            "gradient: ValueError: under vmap, the custom_vjp function fn_wrapped has a primal output that "
            "is shared across the batch",
        ),
        "the reverse rule of a batch of checkpointed loops is refused, which JAX by itself applies",
    ),
    "dynamiqs.decay": KnownFailure(
        ("hvp: TypeError: can't apply forward-mode autodiff (jvp) to a custom_vjp function",),
        "the forward derivative of a reverse rule is refused, which JAX by itself has",
    ),
}


class FailsAsKnown(Exception):
    """A row has the complaints of its known failure and no others."""


def _marked(name: str):
    known = KNOWN_FAILURES.get(name)
    marks = [pytest.mark.xfail(strict=True, raises=FailsAsKnown, reason=known.reason)] if known else []
    return pytest.param(name, marks=marks, id=name)


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


def _check(result: Result) -> None:
    """Raises FailsAsKnown for a known failure, and AssertionError for any other."""
    complaints = result.complaints(named(result.name).absent)
    known = KNOWN_FAILURES.get(result.name)
    if known and complaints and all(text.startswith(known.complaints) for text in complaints):
        raise FailsAsKnown("; ".join(complaints))
    assert complaints == ()
    assert set(result.derivatives) == {"value", "gradient", "hvp"}


@pytest.mark.parametrize("name", [_marked(name) for name in WATCHED])
def test_a_row_agrees_with_jax(name, monkeypatch):
    if reason := _reason_to_skip():
        pytest.skip(reason)
    # For the row's process, which runs once what it compiles.
    monkeypatch.setenv("JAX_DISABLE_MOST_OPTIMIZATIONS", "true")
    _check(run_one(named(name), Path(sys.executable), LIMIT, timed=False))


def test_known_failures_are_of_watched_rows():
    assert set(KNOWN_FAILURES) <= set(WATCHED)


@pytest.mark.parametrize("name", KNOWN_FAILURES)
def test_no_other_complaint_is_a_known_failure(name):
    with pytest.raises(AssertionError):
        _check(Result(name).with_derivative("value", Derivative(error=1.0)))
    with pytest.raises(AssertionError):
        _check(Result(name, end="no end within 240 s"))


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
