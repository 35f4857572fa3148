"""Engines in processes of their own, from the side of the process that asks."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import IO, Any

from .. import cache
from .child import READY, REFERENCE
from .making import Sample
from .reference import Expected
from .stages import STAGES, Outcome

_MOST = 250
"""Samples that one process takes: XLA and Julia keep the code of all that they compiled."""
_STARTING = 300.0
"""Seconds for a process to get ready: it may have to compile what all kernels share."""


class Ended(Exception):
    """The process ended or hung; the message says how."""


class Child:
    """One engine's process, which is started when it is needed.

    patience: seconds for a stage before the process is ended.
    """

    def __init__(self, contender: str, patience: float, folder: Path, waiting: Callable[[], None]):
        self.contender, self.patience, self.waiting = contender, patience, waiting
        self._environment = _environment(folder)
        self._process: subprocess.Popen | None = None
        self._connection: Connection | None = None
        self._said: IO[bytes] | None = None
        self._taken = 0

    def _start(self) -> None:
        """Raises Ended where the process does not get ready."""
        here, there = Pipe()
        self._said = tempfile.TemporaryFile()  # noqa: SIM115  # closed when the process is
        command = [sys.executable, "-m", "pybridge.fuzz.child", self.contender, str(there.fileno())]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=self._said,
            stderr=self._said,
            env=self._environment,
            pass_fds=[there.fileno()],
            start_new_session=True,
        )
        there.close()
        self._connection, self._taken = here, 0
        if self._receive(_STARTING) != READY:
            raise Ended("it did not get ready")

    def stop(self) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        for used in (self._connection, self._said):
            if used is not None:
                used.close()
        self._process = self._connection = self._said = None

    def _send(self, sample: Sample) -> None:
        if self._process is None or self._taken >= _MOST:
            self.stop()
            self._start()
        self._taken += 1
        assert self._connection is not None
        try:
            self._connection.send(sample)
        except OSError:
            raise Ended(self._how()) from None

    def _receive(self, seconds: float) -> Any:
        assert self._connection is not None
        until = time.monotonic() + seconds
        while not self._connection.poll(0.2):
            self.waiting()
            if time.monotonic() > until:
                self.stop()
                raise Ended(f"no answer within {seconds:g} s")
        try:
            return self._connection.recv()
        except (EOFError, OSError, pickle.UnpicklingError):
            raise Ended(self._how()) from None

    def _how(self) -> str:
        assert self._process is not None and self._said is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(10)
        code = self._process.poll()
        self._said.seek(0)
        lines = self._said.read().decode(errors="replace").strip().splitlines()
        self.stop()
        if code is None:
            return "it closed its connection"
        how = f"ended by {signal.Signals(-code).name}" if code < 0 else f"exited with status {code}"
        telling = [
            line for line in lines if "rror" in line or "ssert" in line or "heck fail" in line
        ] or lines
        return f"{how} ({telling[-1].strip()[:200]})" if telling else how

    def outcome(self, sample: Sample) -> Outcome:
        """What the engine makes of the sample, until it ends."""
        made = Outcome()
        try:
            self._send(sample)
            for _ in STAGES:
                stage, found = self._receive(self.patience)
                if isinstance(found, str):
                    made.failures[stage] = found
                else:
                    made.results[stage] = found
        except Ended as end:
            made.end = str(end)
        return made

    def expected(self, sample: Sample) -> Expected:
        """Of the reference. Raises Ended."""
        self._send(sample)
        return self._receive(self.patience)


class Children:
    """The processes of a run: the reference's and one for each contender."""

    def __init__(self, contenders: list[str], patience: float, waiting: Callable[[], None] = lambda: None):
        self._folder = tempfile.TemporaryDirectory(prefix="pybridge-fuzz-")
        folder = Path(self._folder.name)
        self.reference = Child(REFERENCE, 4 * patience, folder, waiting)
        self.contenders = {name: Child(name, patience, folder, waiting) for name in contenders}

    def __enter__(self) -> Children:
        return self

    def __exit__(self, *_: object) -> None:
        for child in (self.reference, *self.contenders.values()):
            child.stop()
        self._folder.cleanup()


def _environment(folder: Path) -> dict[str, str]:
    """A cache of the run's own: what it compiles would displace what the user's has."""
    paths = [str(Path(__file__).resolve().parents[2]), os.getcwd(), os.environ.get("PYTHONPATH", "")]
    return os.environ | {
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "PYBRIDGE_PROGRESS": "off",
        cache.SETTING: str(folder / "cache"),
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
    }
