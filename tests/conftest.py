"""Fixtures shared by all tests."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import jax
import pytest

from pybridge import cache

_RUN = pytest.StashKey[Path]()


def pytest_configure(config: pytest.Config) -> None:
    """A cache of this run's own, which the processes that share the work share too, and a silent stderr."""
    os.environ.setdefault("PYBRIDGE_PROGRESS", "off")  # how long things take depends on the machine
    if cache.SETTING in os.environ:  # the user's choice, or that of the process that started this one
        return
    folder = Path(tempfile.mkdtemp(prefix="pybridge-tests-"))
    os.environ[cache.SETTING] = str(folder)
    config.stash[_RUN] = folder


def pytest_unconfigure(config: pytest.Config) -> None:
    folder = config.stash.get(_RUN, None)
    if folder is not None:
        os.environ.pop(cache.SETTING, None)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def x64():
    """64-bit types in JAX for one test."""
    with jax.enable_x64(True):
        yield
