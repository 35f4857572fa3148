"""The documented search order for Julia, each step with what it found and why it was taken or not.

1. `PYBRIDGE_JULIA`, an explicit setting, which is never passed over in silence
2. a Julia that juliacall has already started in this process
3. juliacall's own choice, if juliapkg has made one (nothing is resolved or downloaded here)
4. `julia` on PATH
"""

from __future__ import annotations

import functools
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from ...errors import JuliaNotFound, JuliaUnusable, PyBridgeError
from . import juliacall_choice
from .probe import Installation, probe

SETTING = "PYBRIDGE_JULIA"

# What decides which Julia is found, in addition to what is installed.
_SETTINGS = (SETTING, "PYTHON_JULIACALL_EXE", "PYTHON_JULIACALL_PROJECT", "PATH")

Host = Literal["embedded", "juliacall", "attached"]
Outcome = Literal["chosen", "absent", "unusable", "not needed"]


@dataclass(frozen=True)
class Step:
    """One place that was looked at."""

    place: str
    outcome: Outcome
    reason: str
    julia: Installation | None = None


@dataclass(frozen=True)
class Discovery:
    """The whole search. `require()` gives the Julia or raises what the search ended with."""

    steps: tuple[Step, ...]
    error: PyBridgeError | None = None

    @property
    def julia(self) -> Installation | None:
        return next((step.julia for step in self.steps if step.outcome == "chosen"), None)

    @property
    def host(self) -> Host:
        """How it would be started: by juliacall where PythonCall can be had, else embedded directly."""
        chosen = next((step for step in self.steps if step.outcome == "chosen"), None)
        if juliacall_choice.running() is not None:
            return "attached"
        return "juliacall" if chosen and chosen.julia and juliacall_choice.fits(chosen.julia) else "embedded"

    def require(self) -> Installation:
        if self.julia is not None:
            return self.julia
        assert self.error is not None
        raise self.error


@dataclass(frozen=True)
class _Nothing(Exception):
    """A place that holds no Julia, which is no fault."""

    reason: str


def find() -> Discovery:
    """Search now. Runs each candidate once with a time limit, touches no network and starts nothing here."""
    steps: list[Step] = []
    faults: list[JuliaUnusable] = []
    for place, look in _PLACES:
        if any(step.outcome == "chosen" for step in steps) or (faults and steps[0].outcome == "unusable"):
            steps.append(Step(place, "not needed", "an earlier step decided"))
            continue
        try:
            julia = look()
        except _Nothing as nothing:
            steps.append(Step(place, "absent", nothing.reason))
        except JuliaUnusable as fault:
            faults.append(fault)
            steps.append(Step(place, "unusable", str(fault)))
        else:
            steps.append(Step(place, "chosen", f"Julia {julia.version} at {julia.executable}", julia))
    return Discovery(tuple(steps), None if any(s.julia for s in steps) else _verdict(steps, faults))


def found() -> Installation:
    """The Julia that a search finds, which is made once for the settings of now. Raises as `require` does."""
    return _found(tuple(os.environ.get(name) for name in _SETTINGS))


@functools.lru_cache(maxsize=8)
def _found(settings: tuple[str | None, ...]) -> Installation:
    return find().require()


def _setting() -> Installation:
    value = os.environ.get(SETTING)
    if not value:
        raise _Nothing("not set")
    path = shutil.which(value)
    if path is None:
        raise JuliaUnusable(
            f"{SETTING}={value} is no executable; set it to the path of a `julia` executable, or unset it"
        )
    return _with_pythoncall(probe(Path(path)))


def _running() -> Installation:
    config = juliacall_choice.running()
    if config is None:
        raise _Nothing("juliacall has not started Julia in this process")
    return probe(config.executable, config.project)


def _juliacall() -> Installation:
    choice = juliacall_choice.choice()
    if isinstance(choice, str):
        raise _Nothing(choice)
    return probe(choice.executable, choice.project)


def _path() -> Installation:
    path = shutil.which("julia")
    if path is None:
        raise _Nothing("no `julia` on PATH")
    return _with_pythoncall(probe(Path(path)))


_PLACES: tuple[tuple[str, Callable[[], Installation]], ...] = (
    (SETTING, _setting),
    ("started by juliacall", _running),
    ("juliacall's choice", _juliacall),
    ("PATH", _path),
)


def _with_pythoncall(julia: Installation) -> Installation:
    """The same Julia in juliacall's project, if juliacall's choice is this very libjulia."""
    choice = juliacall_choice.choice()
    if julia.pythoncall or isinstance(choice, str):
        return julia
    try:
        theirs = probe(choice.executable, choice.project)
    except JuliaUnusable:
        return julia
    same = theirs.libjulia == julia.libjulia and theirs.pythoncall
    return replace(theirs, executable=julia.executable) if same else julia


def _verdict(steps: list[Step], faults: list[JuliaUnusable]) -> PyBridgeError:
    if faults:
        return faults[0]
    looked = "; ".join(f"{step.place}: {step.reason}" for step in steps)
    return JuliaNotFound(
        f"no Julia found ({looked}). Run `pybridge setup` to install one, "
        f"or set {SETTING} to a julia executable"
    )
