"""Tests of kernels that need a process of their own: its exit, its device count, its caches."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]

_PRELUDE = """
import signal; signal.signal(signal.SIGINT, signal.default_int_handler)
import functools, sys, threading, time
import jax, jax.numpy as jnp, numpy as np
import pybridge as pb
from pybridge import julia, native
"""


def start(code: str, *arguments: str, **variables: str) -> subprocess.Popen[str]:
    path = os.pathsep.join(filter(None, [str(CHECKOUT), os.environ.get("PYTHONPATH", "")]))
    return subprocess.Popen(
        [sys.executable, "-c", _PRELUDE + textwrap.dedent(code), *arguments],
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
        raise AssertionError(f"still running after {timeout} s\n{out}\n{err}") from None
    assert process.returncode == 0, f"exit status {process.returncode}\n{out}\n{err}"
    return out


def run(code: str, *arguments: str, **variables: str) -> str:
    return fine(start(code, *arguments, **variables))
