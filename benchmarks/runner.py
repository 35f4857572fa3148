"""Runs rows one after the other, each in new processes, and survives whatever happens in them."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from . import turns
from .case import OURS, Case
from .measure import error
from .processes import WorkerFailed, ask
from .processes import run as run_python
from .results import OLDER_JAX, Measured, Results, Side, side
from .settings import older_python, variables


def begin(threads: Sequence[int], quick: bool) -> Results:
    """What runs, and how long Julia takes to start; no rows yet."""
    start = _ask(str(max(threads)))
    if not quick:
        start = _ask(str(max(threads)))  # a first start may compile what later ones find
    machine = start["machine"] if quick else {**start["machine"], **_older_jax()}
    return Results(machine, quick, (), start["julia_start"])


def rows(
    cases: Sequence[Case], threads: Sequence[int], quick: bool, progress: Callable[[str], None]
) -> Iterator[Measured]:
    """The rows on each number of threads, as they are measured; a row's failure is its result."""
    for case in cases:
        for count in threads:
            progress(f"{case.name}, {count} thread{'s' if count > 1 else ''}")
            yield _row(case, count, quick)


def _older_jax() -> dict[str, str]:
    """Its version, where there is one to measure."""
    python = older_python()
    if python is None:
        return {}
    version = run_python("-c", "import jax; print(jax.__version__)", variables={}, python=python)
    return {OLDER_JAX: version.strip()}


def _row(case: Case, threads: int, quick: bool) -> Measured:
    try:
        if case.cold:
            return _cold(case, threads, quick)
        row = turns.measure(case, threads, quick)
        if case.limit and threads == 1:
            row = replace(row, limit=_limit((str(threads), case.name, *_flags(quick))))
        return row
    except WorkerFailed as failure:
        return Measured(
            case.name,
            threads,
            case.cold is not None,
            Side(failure=str(failure)),
            {r: Side() for r in case.rivals},
        )


def _limit(words: Sequence[str]) -> Side:
    """Right after the row, on the same core."""
    try:
        return side(_ask(*words, "--limit"))
    except WorkerFailed as failure:
        return Side(failure=str(failure))


def _cold(case: Case, threads: int, quick: bool) -> Measured:
    """A new process for each side, from its start to its result; the first rival's result is right."""
    sides, results = {}, {}
    for name in (*case.rivals, OURS):
        start = time.time()
        try:
            told = _ask(str(threads), case.name, "--cold", name, *_flags(quick))
        except WorkerFailed as failure:
            sides[name] = Side(failure=str(failure))
        else:
            sides[name], results[name] = Side(first=told["done"] - start), np.asarray(told["result"])
    ours = sides.pop(OURS)
    right = next((results[rival] for rival in case.rivals if rival in results), None)
    wrong = error(results[OURS], right) if OURS in results and right is not None else float("inf")
    return Measured(case.name, threads, True, ours, sides, agrees=wrong <= case.tolerance)


def _flags(quick: bool) -> Iterator[str]:
    if quick:
        yield "--quick"


def _ask(*arguments: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="pybridge-bench-") as folder:
        return ask("-m", "benchmarks.worker", *arguments, variables=variables(folder))
