"""Each test of the runtime runs in a process of its own: a process has one Julia, and may die of it."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parents[2]
ECHO = HERE / "echo"


@dataclass(frozen=True)
class Ended:
    """How a process ended and what it said."""

    code: int
    out: str
    err: str

    def fine(self) -> str:
        """Its output, if it ended well."""
        assert self.code == 0, f"exit status {self.code}\n{self.out}\n{self.err}"
        return self.out


# Tests that run in the background have SIGINT ignored, which child processes inherit.
_INTERRUPTIBLE = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"

# The runtime needs nothing else of pybridge, and importing JAX each time would double the time.
_RUNTIME_ONLY = f"""
import sys, types
sys.modules["pybridge"] = types.ModuleType("pybridge")
sys.modules["pybridge"].__path__ = [{str(CHECKOUT / "pybridge")!r}]
"""


@dataclass(frozen=True)
class Python:
    """Runs code in fresh Python processes that see pybridge and serve the package Echo."""

    environment: dict[str, str]
    whole: bool = False  # with all of pybridge, as users import it

    @property
    def importing_all(self) -> Python:
        return replace(self, whole=True)

    def with_(self, **variables: str) -> Python:
        return replace(self, environment={**self.environment, **variables})

    def without(self, *names: str) -> Python:
        kept = {key: value for key, value in self.environment.items() if key not in names}
        return replace(self, environment=kept)

    @property
    def with_no_choice(self) -> Python:
        """Without what the user may have said about which Julia to take."""
        return self.without("PYBRIDGE_JULIA", "PYTHON_JULIACALL_EXE", "PYTHON_JULIACALL_PROJECT")

    def start(self, code: str, *arguments: str) -> subprocess.Popen[str]:
        prelude = _INTERRUPTIBLE + ("" if self.whole else _RUNTIME_ONLY)
        return subprocess.Popen(
            [sys.executable, "-c", prelude + textwrap.dedent(code), *arguments],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, code: str, *arguments: str, timeout: float = 120) -> Ended:
        return ended(self.start(code, *arguments), timeout)


def ended(process: subprocess.Popen[str], timeout: float = 120) -> Ended:
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        pytest.fail(f"still running after {timeout} s\n{out}\n{err}")
    return Ended(process.returncode, out, err)
