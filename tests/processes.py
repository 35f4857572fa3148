"""Tests that need a process of their own: its exit, its device count, its caches, its heap."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]

# Whoever runs the tests in the background leaves them with SIGINT ignored, which children inherit.
INTERRUPTIBLE = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"


def start(code: str, *arguments: str, **variables: str) -> subprocess.Popen[str]:
    """Python with this pybridge in reach and these environment variables besides, running `code`."""
    return start_command(
        [sys.executable, "-c", INTERRUPTIBLE + textwrap.dedent(code), *arguments], **variables
    )


def start_command(command: list[str], folder: Path | None = None, **variables: str) -> subprocess.Popen[str]:
    """A command in a folder, with this pybridge in reach of any Python and these variables besides."""
    path = os.pathsep.join(filter(None, [str(CHECKOUT), os.environ.get("PYTHONPATH", "")]))
    return subprocess.Popen(
        command,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, **variables},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def fine(process: subprocess.Popen[str], timeout: float = 240) -> str:
    """What the process printed, if it ended well and in time."""
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        raise AssertionError(f"still running after {timeout} s\n{out[-3000:]}\n{err[-6000:]}") from None
    assert process.returncode == 0, f"exit status {process.returncode}\n{out[-3000:]}\n{err[-6000:]}"
    return out


def run(code: str, *arguments: str, timeout: float = 240, **variables: str) -> str:
    return fine(start(code, *arguments, **variables), timeout)


def run_file(path: Path, *arguments: str, timeout: float = 240, **variables: str) -> str:
    return fine(start_command([sys.executable, str(path), *arguments], **variables), timeout)
