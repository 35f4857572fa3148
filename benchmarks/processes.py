"""New Python processes, which answer with lines of JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

_ROOT = Path(__file__).resolve().parent.parent
_PATIENCE = 900.0  # seconds for one answer
PREPARE = ("-c", "from pybridge.runtime import kernel_files; kernel_files.prepare()")
"""Python's arguments that leave the cache as `pybridge setup` leaves it."""
_NOT_OF_USERS = ("PYTHONDONTWRITEBYTECODE", "OPENBLAS_")


class WorkerFailed(Exception):
    """A process ended without an answer."""


class Worker:
    """A process that answers each line of its input with one of JSON, and ends where its input ends.

    A context manager: the process does not outlive it.
    """

    def __init__(
        self,
        *arguments: str,
        variables: Mapping[str, str],
        python: str = sys.executable,
        patience: float = _PATIENCE,
    ):
        """arguments: Python's. variables: what differs from this process's environment.

        patience: the seconds after which an answer is late.
        """
        self._patience = patience
        self._errors: IO[str] = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - __exit__ closes
        self._process = subprocess.Popen(
            [python, *arguments],
            cwd=_ROOT,
            env=_environment(variables),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )

    def ask(self, question: str) -> Any:
        """The answer to a line.

        Raises:
            WorkerFailed: the process ended, or did not answer in time and was killed.
        """
        assert self._process.stdin is not None and self._process.stdout is not None
        late = threading.Event()
        timer = threading.Timer(self._patience, self._end, (late,))
        timer.start()
        try:
            print(question, file=self._process.stdin, flush=True)
            answer = self._process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        finally:
            timer.cancel()
        if not answer:
            raise self._failure(late.is_set())
        return json.loads(answer)

    def _end(self, late: threading.Event) -> None:
        late.set()
        self._process.kill()

    def _failure(self, late: bool) -> WorkerFailed:
        if late:
            return WorkerFailed(f"no answer within {self._patience:g} s")
        status = self._process.wait()
        self._errors.seek(0)
        return _ended(status, self._errors.read())

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *raised: object) -> None:
        self._process.kill()
        self._process.communicate()
        self._errors.close()


def ask(*arguments: str, variables: Mapping[str, str], python: str = sys.executable) -> Any:
    """What a process prints in its last line, as JSON.

    arguments: Python's. variables: what differs from this process's environment.

    Raises:
        WorkerFailed: the process ended with an error, or not in time.
    """
    return json.loads(run(*arguments, variables=variables, python=python).splitlines()[-1])


def run(*arguments: str, variables: Mapping[str, str], python: str = sys.executable) -> str:
    """What a process prints; see `ask`."""
    try:
        done = subprocess.run(
            [python, *arguments],
            cwd=_ROOT,
            env=_environment(variables),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise WorkerFailed(f"no answer within {_PATIENCE:g} s") from None
    if done.returncode:
        raise _ended(done.returncode, done.stderr)
    return done.stdout


def _environment(variables: Mapping[str, str]) -> dict[str, str]:
    # Python keeps its compiled files, as it does those of installed packages, and OpenBLAS finds out what the
    # processor can do, as users leave it to.
    kept = {name: x for name, x in os.environ.items() if not name.startswith(_NOT_OF_USERS)}
    return {**kept, **variables}


def _ended(status: int, errors: str) -> WorkerFailed:
    words = errors.strip().splitlines()
    return WorkerFailed(f"the process ended with status {status}: {words[-1][:300] if words else ''}")
