"""A planted fault in a copy of the checkout, and the tests that fail there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..julia_tests import command
from .fault import ROOT, Fault

_PATIENCE = 600.0  # seconds for a part
_PYTEST = re.compile(r"^FAILED (.+?)(?: - .*)?$", re.MULTILINE)
# "rules/elementwise: Test Failed at /folder/julia/test/rules/elementwise.jl:12"
_JULIA = re.compile(r"^(.*): (?:Test Failed|Error During Test) at \S*/julia/test/(\S+)", re.MULTILINE)


@dataclass(frozen=True)
class Outcome:
    """found: the tests that failed, in the order in which they did. output: what the part printed."""

    fault: Fault
    found: tuple[str, ...]
    seconds: float
    output: str


def outcome(fault: Fault) -> Outcome:
    """Applies the fault in a copy of the checkout and runs its part there.

    Raises ValueError where the patch does not fit.
    """
    with tempfile.TemporaryDirectory(prefix="pybridge-planted-") as name:
        folder = Path(name) / "checkout"
        copy_checkout(folder)
        if reason := fault.apply(folder):
            raise ValueError(f"{fault.file.name} does not fit: {reason}")
        begin = time.monotonic()
        output = _output(_command(fault), folder, Path(name) / "cache")
        seconds = time.monotonic() - begin
    return Outcome(fault, failures(fault, output), seconds, output)


def copy_checkout(target: Path) -> None:
    """The files that git has or would take, as they are now."""
    words = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for path in filter(None, listed.split("\0")):
        source, copy = ROOT / path, target / path
        if source.is_symlink() or source.exists():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, copy, follow_symlinks=False)


def _command(fault: Fault) -> Sequence[str]:
    if fault.language == "python":
        return [sys.executable, "-m", "pytest", "-q", "-rf", "--tb=line", *fault.words]
    return command(fault.words)


def _output(words: Sequence[str], folder: Path, cache: Path) -> str:
    environment = os.environ | {"PYTHONPATH": str(folder), "PYBRIDGE_CACHE": str(cache)}
    try:
        done = subprocess.run(
            words,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=_PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        return f"no end within {_PATIENCE:g} s\n{late.stdout or ''}"
    return done.stdout


def failures(fault: Fault, output: str) -> tuple[str, ...]:
    """The tests that failed by what the part printed; what could not be loaded is no test."""
    if fault.language == "python":
        found = _PYTEST.findall(output)
    else:
        found = [f"{test} ({place})" for test, place in _JULIA.findall(output)]
    return tuple(dict.fromkeys(found))
