"""`pybridge setup`: get a Julia if there is none, and prepare it, with a progress display.

juliapkg is asked first, because it brings a current Julia with PythonCall; where the network does not
allow that, Debian's own package is installed, as root and with consent. Enzyme.jl is installed if asked for.
"""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import JuliaNotFound, JuliaUnusable, PyBridgeError
from . import debian, image, package_manager, source
from .discovery import find
from .probe import Installation

if TYPE_CHECKING:
    from rich.console import Console

_LOG = logging.getLogger("pybridge.setup")


_START = """
import sys
from pybridge.errors import PyBridgeError
from pybridge.runtime.julia import start
try:
    print(start().package)
except PyBridgeError as problem:
    sys.exit(f"{type(problem).__name__}: {problem}")
"""


@dataclass(frozen=True)
class Outcome:
    """The Julia that is ready now; `how` says where it came from."""

    julia: Installation
    installed: bool
    how: str


def setup(
    consent: bool = False,
    progress: debian.Progress | None = None,
    *,
    compiled: bool = True,
    enzyme: bool = False,
) -> Outcome:
    """Make sure that there is a Julia that works, and precompile JaxprAD for it.

    `consent` allows a system-wide installation by the package manager. `compiled`: for a Julia that
    keeps no native code, also a system image, which takes minutes. `enzyme`: Enzyme.jl, too. Raises
    JuliaNotFound or JuliaUnusable saying what to do where no way is open.
    """
    report = progress or _log
    report("looking for Julia", None)
    before = find()
    if before.steps[0].outcome == "unusable":  # an explicit setting stays the user's to correct
        before.require()
    if before.julia is not None:
        outcome = Outcome(before.julia, False, f"Julia {before.julia.version} is already there")
    else:
        how = _install(consent, report)
        after = find()
        outcome = Outcome(after.require(), True, how)
    if enzyme:
        package_manager.install_enzyme(outcome.julia, report)
    report("precompiling JaxprAD", None)
    precompile()
    if compiled and image.wanted(outcome.julia, source.jaxprad()):
        image.build(outcome.julia, source.jaxprad(), report)
    report(f"ready: Julia {outcome.julia.version}", 1.0)
    return outcome


def precompile() -> None:
    """Load JaxprAD once in a process of its own, which leaves its precompiled files for all later ones."""
    problem = start_elsewhere()[1]
    if problem:
        raise JuliaUnusable(f"Julia is there but JaxprAD does not load in it: {problem}")


def start_elsewhere(patience: float = 900.0) -> tuple[str, str]:
    """Start Julia in a process of its own, which may die: where JaxprAD loads from, or what went wrong."""
    # the child has to find the same pybridge, whichever way this process found it
    paths = [str(Path(__file__).resolve().parents[3]), os.environ.get("PYTHONPATH", "")]
    environment = {
        "JULIA_IMAGE_THREADS": str(os.cpu_count() or 1),  # Julia itself takes half of them
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
    }
    try:
        done = subprocess.run(
            [sys.executable, "-c", _START],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=patience,
            env=environment,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "", f"Julia did not start within {patience:g} s"
    if done.returncode == 0:
        return done.stdout.strip().splitlines()[-1], ""
    words = " ".join(line for line in done.stderr.strip().splitlines()[-3:] if line.strip())
    return "", words[-400:] or f"the process ended with {done.returncode}"


def _install(consent: bool, report: debian.Progress) -> str:
    refusals = []
    for name, way in (
        ("juliapkg", lambda: package_manager.install_julia(report)),
        ("Debian", lambda: debian.install(consent, report)),
    ):
        try:
            way()
            return f"installed by {name}"
        except PyBridgeError as refusal:
            refusals.append(f"{name}: {refusal}")
    raise JuliaNotFound("no way to get a Julia is open here.\n" + "\n".join(f"- {line}" for line in refusals))


@contextlib.contextmanager
def rich_progress(console: Console | None = None) -> Iterator[debian.Progress]:
    """A progress display for `setup` on the terminal (stderr, so that stdout stays for output)."""
    # here, because `import pybridge` should not pay for it
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console or Console(stderr=True)) as bars:
        task = bars.add_task("starting", total=None)

        def report(doing: str, fraction: float | None) -> None:
            bars.update(
                task, description=doing, total=None if fraction is None else 1.0, completed=fraction or 0.0
            )

        yield report


def _log(doing: str, fraction: float | None) -> None:
    _LOG.info("%s%s", doing, "" if fraction is None else f" {fraction:.0%}")
