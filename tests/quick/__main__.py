"""`python -m tests.quick FILES...` runs what the changed files are likeliest to break.

Paths are from the checkout's root; without any, the files that differ from the last commit. Julia's tests and
Python's run side by side, each by rank until its share of the time is used up, and what was left out is said.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated

import typer
from rich.console import Console

from ..julia_tests import command
from . import julia_files, python_files
from .choice import ROOT, Candidate, fitting, known_seconds

_JULIA_BUDGET = 75.0  # seconds in a whole run, where files share what Julia compiles; alone they take twice
_PYTHON_BUDGET = 120.0
_CASES = "tests/derivatives/test_cases.py"


@dataclass(frozen=True)
class Job:
    """A command, what it covers and what did not fit."""

    name: str
    command: tuple[str, ...]
    chosen: list[Candidate]
    left_out: list[Candidate]


def changed_files() -> list[str]:
    """What differs from the last commit, new files included."""
    words = ["git", "status", "--porcelain", "--untracked-files=all", "--no-renames"]
    lines = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return [line[3:].strip('"') for line in lines]


def jobs(changed: Sequence[str]) -> list[Job]:
    known = known_seconds()
    found = []
    chosen, left_out = fitting(julia_files.candidates(changed, known), _JULIA_BUDGET)
    if chosen:
        words = [c.path.removeprefix("julia/test/").removesuffix(".jl") for c in chosen]
        found.append(Job("Julia", tuple(command(words)), chosen, left_out))
    operations = julia_files.primitives(changed)
    if operations:
        # Each primitive's cases; JaxprAD's image is of other sources now, so Julia compiles what they need.
        words = (_CASES, "-k", cases_of(operations))
        own = Candidate(f"{_CASES} of {', '.join(operations)}", (0,), 30.0, "the primitives' cases")
        found.append(Job("cases", (*_pytest(1), *words), [own], []))
    chosen, left_out = fitting(python_files.candidates(changed, known), _PYTHON_BUDGET)
    if chosen:
        found.append(Job("Python", (*_pytest(2), *(c.path for c in chosen)), chosen, left_out))
    python = [path for path in changed if path.endswith(".py") and (ROOT / path).exists()]
    if python:
        found.append(Job("lint", (sys.executable, "-m", "ruff", "check", *python), [], []))
    return found


def cases_of(operations: Iterable[str]) -> str:
    """What selects their cases for pytest. Names alone may be words of its language: `not`, `and`, `or`."""
    return " or ".join(f"[{name}" for name in operations)


def _pytest(processes: int) -> tuple[str, ...]:
    return (sys.executable, "-m", "pytest", "-q", "-n", str(processes), "--dist", "worksteal")


def _said(console: Console, job: Job) -> None:
    for candidate in job.chosen:
        console.print(f"{job.name:7} {candidate.path} ({candidate.why}, {candidate.seconds:.0f} s)")
    if job.left_out:
        names = ", ".join(candidate.path for candidate in job.left_out[:8])
        console.print(f"{job.name:7} left to `make test`: {len(job.left_out)} files, such as {names}")


def run(console: Console, found: Iterable[Job]) -> bool:
    """Runs the commands side by side; whether all passed."""
    started = [
        (
            job,
            subprocess.Popen(
                job.command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            ),
        )
        for job in found
    ]
    fine = True
    for job, process in started:
        output, _ = process.communicate()
        passed = process.returncode == 0
        fine &= passed
        console.rule(f"{job.name}: {'passed' if passed else 'FAILED'}")
        console.print(output[-12000:].rstrip(), markup=False)
    return fine


def main(
    files: Annotated[list[str] | None, typer.Argument(help="Changed files, from the root.")] = None,
    show: Annotated[bool, typer.Option("--show", help="Only print what would run.")] = False,
) -> None:
    console = Console(highlight=False, soft_wrap=True)
    changed = files or changed_files()
    unknown = [path for path in files or [] if not (ROOT / path).exists()]
    if unknown:
        raise typer.BadParameter(f"there is no {', '.join(unknown)}")
    found = jobs(changed)
    for job in found:
        _said(console, job)
    if not found:
        console.print("no test depends on these files: make test")
    if not show and not run(console, found):
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
