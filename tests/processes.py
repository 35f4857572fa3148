"""Tests that need a process of their own: its exit, its device count, its caches, its heap."""

from __future__ import annotations

import atexit
import functools
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import IO

CHECKOUT = Path(__file__).resolve().parents[1]

# Tests that run in the background have SIGINT ignored, which child processes inherit.
INTERRUPTIBLE = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"


def start(code: str, *arguments: str, **variables: str) -> subprocess.Popen[str]:
    """Python with this pybridge in reach and these environment variables in addition, running `code`."""
    return start_command(
        [sys.executable, "-c", INTERRUPTIBLE + textwrap.dedent(code), *arguments], **variables
    )


def start_command(command: list[str], folder: Path | None = None, **variables: str) -> subprocess.Popen[str]:
    """A command in a folder, with this pybridge in reach of any Python and these variables in addition."""
    return subprocess.Popen(
        command,
        cwd=folder,
        env=_environment(variables),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _environment(variables: dict[str, str]) -> dict[str, str]:
    path = os.pathsep.join(filter(None, [str(CHECKOUT), os.environ.get("PYTHONPATH", "")]))
    return {**os.environ, "PYTHONPATH": path, **variables}


def fine(process: subprocess.Popen[str] | Forked, timeout: float = 240) -> str:
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


# Processes that begin with JAX and pybridge imported

_AT_IMPORT = ("JAX_", "PYTHON", "LD_", "LC_", "LANG", "OMP_", "OPENBLAS_")
"""How variables begin that are looked at when something is imported, or by the interpreter's start."""


@dataclass
class Forked:
    """A process that was forked for a script, with so much of Popen as `fine` uses."""

    status: IO[bytes]
    out: IO[bytes]
    err: IO[bytes]
    returncode: int | None = None

    def __post_init__(self) -> None:
        self.pid = int(self.status.readline())

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        if self.returncode is None:
            if not select.select([self.status], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("a forked process", timeout or 0)
            self.returncode = int(self.status.readline())
        self.status.close()
        said = []
        for file in (self.out, self.err):
            file.seek(0)
            said.append(file.read().decode(errors="replace"))
            file.close()
        return said[0], said[1]

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)


@functools.cache
def _server() -> tuple[socket.socket, dict[str, str]]:
    """Where scripts are sent to, and the environment of the process that takes them."""
    ours, theirs = socket.socketpair()
    environment = _environment({})
    command = [sys.executable, str(CHECKOUT / "tests" / "forking.py"), str(theirs.fileno())]
    server = subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        pass_fds=[theirs.fileno()],
    )
    theirs.close()
    atexit.register(server.wait)  # after the socket's end, at which it ends
    atexit.register(ours.close)
    return ours, environment


def start_imported(
    code: str, *arguments: str, folder: Path | None = None, **variables: str
) -> subprocess.Popen[str] | Forked:
    """As `start`, but the process has imported JAX and pybridge, which takes most of a short script's time.

    Not for what is about imports, or about how Python starts and ends. The process is a new one where a
    variable matters to imports.
    """
    server, its = _server()
    environment = _environment(variables)

    def at_import(names: dict[str, str]) -> dict[str, str]:
        return {name: value for name, value in names.items() if name.startswith(_AT_IMPORT)}

    if at_import(environment) != at_import(its):
        command = [sys.executable, "-c", INTERRUPTIBLE + textwrap.dedent(code), *arguments]
        return start_command(command, folder, **variables)
    script = {
        "code": textwrap.dedent(code),
        "arguments": arguments,
        "folder": str(folder or Path.cwd()),
        "environment": environment,
    }
    out, err = (tempfile.TemporaryFile() for _ in range(2))  # noqa: SIM115  # closed by `communicate`
    ours, theirs = os.pipe()
    with tempfile.TemporaryFile() as asked:
        asked.write(json.dumps(script).encode())
        asked.seek(0)
        socket.send_fds(server, [b"+"], [asked.fileno(), out.fileno(), err.fileno(), theirs])
    os.close(theirs)
    return Forked(os.fdopen(ours, "rb", buffering=0), out, err)


def run_imported(code: str, *arguments: str, timeout: float = 240, **variables: str) -> str:
    return fine(start_imported(code, *arguments, **variables), timeout)
