"""Records the seconds of each test and what took them.

Active in processes whose environment has PYBRIDGE_TEST_TIMES, the folder of the records. Each process
writes a file of its own, a JSON object a line: a test's file, its name and its seconds by cause. The
causes exclude each other: time in a nested cause is not time of the outer one.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import processes
import pytest

SETTING = "PYBRIDGE_TEST_TIMES"
REST = "Python and kernels"
_XLA = "XLA compiling"
_OF_REQUESTS = {
    "compile": "Julia: kernels",
    "object": "Julia: kernels",
    "library_object": "Julia: kernels",
    "routine_object": "Julia: kernels",
    "host_object": "Julia: kernels",
    "explain": "Julia: kernels",
    "evaluate": "Julia: evaluator",
}
_OTHER_REQUESTS = "Julia: Programs"
_XLA_EVENT = "/jax/core/compile/backend_compile_duration"


class Clock:
    """Seconds by cause, each counted once: what an inner cause takes is subtracted from the outer one."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()
        self._causes = [REST]
        self._since = time.perf_counter()

    def _count(self) -> None:
        now = time.perf_counter()
        self.seconds[self._causes[-1]] += now - self._since
        self._since = now

    @contextmanager
    def during(self, cause: str) -> Iterator[None]:
        self._count()
        self._causes.append(cause)
        try:
            yield
        finally:
            self._count()
            self._causes.pop()

    def move(self, seconds: float, cause: str) -> None:
        """The last `seconds` belong to `cause`, not to the cause that is being counted."""
        self._count()
        self.seconds[self._causes[-1]] -= seconds
        self.seconds[cause] += seconds

    def take(self) -> dict[str, float]:
        """Seconds since the last call."""
        self._count()
        taken, self.seconds = self.seconds, Counter()
        return {cause: round(value, 4) for cause, value in taken.items() if value > 5e-5}


_CLOCK = Clock()


def _counted(owner: Any, name: str, cause: Callable[..., str]) -> None:
    """Replaces a function by one that counts its time."""
    function = getattr(owner, name)

    @functools.wraps(function)
    def counting(*args: Any, **kwargs: Any) -> Any:
        with _CLOCK.during(cause(*args, **kwargs)):
            return function(*args, **kwargs)

    setattr(owner, name, counting)


def _watch() -> None:
    """Counts requests to Julia, XLA's compiler, other processes and sleep apart from the rest."""
    import jax.monitoring

    from pybridge.runtime.julia.runtime import Runtime

    _counted(Runtime, "request", lambda self, command, *_, **__: _OF_REQUESTS.get(command, _OTHER_REQUESTS))
    _counted(Runtime, "start", lambda *_: "Julia: start")
    for name in ("__init__", "wait", "communicate"):
        _counted(subprocess.Popen, name, lambda *_, **__: "other processes")
    _counted(processes.Forked, "communicate", lambda *_, **__: "other processes")
    _counted(time, "sleep", lambda *_: "sleep")
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, seconds, **_: _CLOCK.move(seconds, _XLA) if event == _XLA_EVENT else None
    )


class Recorder:
    """Writes a line for each test, and one for what comes before the first."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / f"python-{os.getpid()}.jsonl"
        self._release = "{}.{}".format(*sys.version_info[:2])

    def _write(self, file: str, test: str) -> None:
        record = {"part": f"Python {self._release}", "file": file, "test": test, "seconds": _CLOCK.take()}
        with self._path.open("a") as lines:
            lines.write(json.dumps(record) + "\n")

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self) -> Iterator[None]:
        with _CLOCK.during("collection and imports"):
            result = yield
        return result

    def pytest_collection_finish(self) -> None:
        self._write("(start)", "")

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        _CLOCK.take()  # what a worker waits for its next test belongs to no test
        result = yield
        file, _, test = item.nodeid.partition("::")
        self._write(file, test)
        return result


def register(config: pytest.Config) -> None:
    """Has this process's tests recorded, where it runs tests and the setting names a folder."""
    folder = os.environ.get(SETTING)
    # Of the processes of pytest-xdist the one that hands out tests runs none.
    runs_tests = hasattr(config, "workerinput") or not getattr(config.option, "numprocesses", None)
    if folder and runs_tests and not config.pluginmanager.has_plugin("test-times"):
        _watch()
        config.pluginmanager.register(Recorder(Path(folder)), "test-times")
