"""New Python processes, each of which answers with a line of JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parent.parent
_PATIENCE = 900.0  # seconds for one process


class WorkerFailed(Exception):
    """A process ended without an answer."""


def ask(*arguments: str, variables: Mapping[str, str]) -> Any:
    """What a process prints in its last line, as JSON.

    arguments: Python's. variables: what differs from this process's environment.

    Raises:
        WorkerFailed: the process ended with an error, or not in time.
    """
    return json.loads(run(*arguments, variables=variables).splitlines()[-1])


def run(*arguments: str, variables: Mapping[str, str]) -> str:
    """What a process prints; see `ask`."""
    # Python keeps its compiled files, as it does those of installed packages.
    environment = {name: x for name, x in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    try:
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=_ROOT,
            env={**environment, **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise WorkerFailed(f"no answer within {_PATIENCE:g} s") from None
    if done.returncode:
        words = done.stderr.strip().splitlines()
        raise WorkerFailed(
            f"the process ended with status {done.returncode}: {words[-1][:300] if words else ''}"
        )
    return done.stdout
