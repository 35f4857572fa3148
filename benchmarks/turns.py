"""A row, measured by a process for each side, which take turns.

In one process what a side leaves behind is part of the next one's time: whether memory goes back to the
system after each call depends on what was allocated before, and a pool of threads goes on looking for work.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from pybridge.comparison._timing import medians

from .case import OURS, Case
from .measure import assembled, load_right, rounds
from .processes import Worker, WorkerFailed, ask
from .results import OLDER_JAX, Measured, Side, side
from .settings import FLAG, older_python, variables


@dataclass(frozen=True)
class _SideProcess:
    """A side's process. side: what its first call took, or why there is no such process any more."""

    name: str
    worker: Worker
    side: Side


@dataclass(frozen=True)
class _Setting:
    """How a process runs. name: of what it measures, of which some have several processes; flag: XLA's."""

    name: str
    side: str
    flag: str = ""
    python: str = sys.executable


def measure(case: Case, threads: int, quick: bool) -> Measured:
    """All sides of a row, the rivals as they come and with XLA's flag: the faster of both is the rival.

    Where an older JAX is installed, the first rival runs with that, too, as it comes.

    Raises:
        WorkerFailed: there is no result of JAX's to compare with, or a side failed after its first result.
    """
    words = ("-m", "benchmarks.worker", str(threads), case.name, *(["--quick"] if quick else []))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pybridge-bench-")))
        right = folder / "right.pickle"
        ask(*words, "--right", str(right), variables=variables(str(folder / "right")))
        processes = []
        for one in _settings(case, quick):
            settings = variables(str(folder / str(len(processes))), one.flag)
            asked = (*words, "--side", one.side, "--right", str(right))
            worker = stack.enter_context(Worker(*asked, variables=settings, python=one.python))
            processes.append(_SideProcess(one.name, worker, _first(worker, bool(one.flag))))
        sides = _sampled(processes, quick)
        older = sides.pop(OLDER_JAX, None)
        row = assembled(case, threads, sides.pop(OURS), sides, load_right(right))
        return replace(row, older=older)


def _settings(case: Case, quick: bool) -> Iterator[_Setting]:
    yield _Setting(OURS, OURS)
    for rival in case.rivals:
        yield _Setting(rival, rival)
        if not quick:
            yield _Setting(rival, rival, FLAG)
    older = older_python()
    if older and not quick:
        yield _Setting(OLDER_JAX, case.rivals[0], python=older)


def _first(worker: Worker, flagged: bool) -> Side:
    """Waits for the side's first result, so that nothing else runs meanwhile."""
    try:
        return replace(side(worker.ask("first")), flagged=flagged)
    except WorkerFailed as failure:
        return Side(failure=str(failure), flagged=flagged)


def _sampled(processes: Sequence[_SideProcess], quick: bool) -> dict[str, Side]:
    """By name, with seconds and errors, what failed without; where two are of one name, the faster."""
    alive = [p for p in processes if not p.side.failure]
    seconds = medians([partial(p.worker.ask, "sample") for p in alive], *rounds(quick))
    sides = {p.name: p.side for p in processes}
    slowest_first = sorted(zip(alive[::-1], seconds[::-1], strict=True), key=lambda timed: -timed[1])
    for process, taken in slowest_first:
        sides[process.name] = replace(process.side, seconds=taken, error=process.worker.ask("error"))
    return sides
