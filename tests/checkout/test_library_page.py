"""The examples of docs/library.md, run as they stand there, print what it shows."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import c_libraries
import processes
import pytest

from pybridge.runtime import julia, linker

pytestmark = pytest.mark.skipif(linker.linker() is None, reason="there is no linker, so no libraries")

PAGE = (Path(__file__).parents[2] / "docs" / "library.md").read_text()


def block(language: str) -> str:
    (found,) = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return found


def shown(number: int) -> str:
    return re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)[number]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where the library is."""
    path = tmp_path_factory.mktemp("page")
    (path / "model.py").write_text(block("python"))
    processes.run(f"import os, runpy; os.chdir({str(path)!r}); runpy.run_path('model.py')")
    return path


@pytest.mark.skipif(c_libraries.COMPILER is None, reason="there is no C compiler")
def test_c(folder):
    (folder / "fit.c").write_text(block("c"))
    (command,) = re.findall(r"^    (gcc .*)$", PAGE, re.MULTILINE)
    command = command.replace("gcc", str(c_libraries.COMPILER), 1)
    done = subprocess.run(command, shell=True, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == shown(0)


def test_julia(folder):
    (folder / "gradient.jl").write_text(block("julia"))
    command = julia.find().require().executable
    assert c_libraries.run(command, "--startup-file=no", folder / "gradient.jl") == shown(1)
