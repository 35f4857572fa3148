"""Fixtures of the runtime's tests."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from .processes import CHECKOUT, ECHO, Python


@pytest.fixture(scope="session")
def depot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where Julia puts what it precompiles; shared, so that Echo is precompiled once."""
    return tmp_path_factory.mktemp("depot")


@pytest.fixture
def python(depot: Path) -> Python:
    variables = {key: value for key, value in os.environ.items() if not key.startswith("PYTHONFAULT")}
    path = os.pathsep.join(filter(None, [str(CHECKOUT), variables.get("PYTHONPATH", "")]))
    # the empty entry stands for the user's own depots, where PythonCall is if it is anywhere
    return Python(
        variables | {"PYTHONPATH": path, "PYBRIDGE_JAXPRAD": str(ECHO), "JULIA_DEPOT_PATH": f"{depot}:"}
    )


@pytest.fixture
def fake_julia(tmp_path: Path) -> Callable[[str], Path]:
    """A shell script called julia that does as told."""

    def write(script: str) -> Path:
        file = tmp_path / "fake" / "julia"
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        file.chmod(0o755)
        return file

    return write
