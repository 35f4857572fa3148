"""What was measured, as data that go to JSON and come back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import reduce
from pathlib import Path

from pybridge.errors import UnknownOption

from .case import Requirement

OLDER_JAX = "older jax"  # a side, and the key of its version in `Results.machine`


@dataclass(frozen=True)
class Side:
    """One of those that were measured. Seconds and bytes; None where there is no such figure.

    first: to the first result, compilation included: in a running process with Julia up, or, for rows of
        new processes, from the process's start.
    memory: results, temporary buffers and the largest workspace of a kernel (`native.memory`).
    error: against float64, relative to the largest element.
    flagged: measured with XLA's flag for small loops (runner.py).
    """

    first: float | None = None
    seconds: float | None = None
    memory: int | None = None
    error: float | None = None
    failure: str = ""
    flagged: bool = False


@dataclass(frozen=True)
class Measured:
    """A row on so many threads. agrees: pybridge's result is right, within the row's tolerance.

    reference_memory, reference_error: JAX's own; that error is zero where the program is in float64.
    limit: the same by hand; None where nobody has written it, or where it was not measured.
    older: the first rival with an older JAX, as that comes; None where there was none.
    """

    case: str
    threads: int
    cold: bool
    ours: Side
    rivals: Mapping[str, Side]
    reference_memory: int | None = None
    reference_error: float | None = None
    agrees: bool = False
    limit: Side | None = None
    older: Side | None = None

    def ratio(self, rival: str) -> float | None:
        """How many times as fast as the rival pybridge is."""
        mine, other = self._time(self.ours), self._time(self.rivals[rival])
        return None if not mine or other is None else other / mine

    @property
    def over_limit(self) -> float | None:
        """How many times its limit's time pybridge takes."""
        mine, least = self.ours.seconds, self.limit.seconds if self.limit else None
        return None if mine is None or not least else mine / least

    def _time(self, side: Side) -> float | None:
        return side.first if self.cold else side.seconds

    def met(self, requirement: Requirement) -> bool | None:
        """None: nothing is required on so many threads."""
        if requirement.ratio is None or requirement.threads not in (None, self.threads):
            return None
        ratio = self.ratio(requirement.rival)
        return self.agrees and ratio is not None and ratio >= requirement.ratio

    def memory_met(self) -> bool | None:
        if self.ours.memory is None or self.reference_memory is None:
            return None
        return self.ours.memory <= self.reference_memory

    @property
    def errors(self) -> tuple[float, ...]:
        """pybridge's, if it has a result, and JAX's where that is not what it is compared with."""
        return tuple(e for e in (self.ours.error, self.reference_error or None) if e is not None)

    def error_met(self) -> bool | None:
        """Whether pybridge's error is at most JAX's; None where JAX's result is what it is compared with."""
        if self.ours.error is None or not self.reference_error:
            return None
        return self.ours.error <= self.reference_error


@dataclass(frozen=True)
class Results:
    """A run. machine: where, when, and versions; julia_start: the seconds until Julia had answered once.

    notes: sentences for the page, such as what disturbed the run.
    """

    machine: Mapping[str, str]
    quick: bool
    rows: Sequence[Measured]
    julia_start: float | None = None
    notes: Sequence[str] = field(default=())

    def of(self, case: str) -> Iterator[Measured]:
        return (row for row in self.rows if row.case == case)

    def including(self, row: Measured) -> Results:
        """With that row, in the place of the same row on as many threads."""
        others = (one for one in self.rows if (one.case, one.threads) != (row.case, row.threads))
        return replace(self, rows=(*others, row))

    def after(self, earlier: Results) -> Results:
        """With the rows and notes of an earlier run in addition to these.

        Raises:
            UnknownOption: that was another machine, or other versions, so the figures are no table.
        """
        if _versions(self) != _versions(earlier):
            raise UnknownOption(f"the file's rows are of {_versions(earlier)}, these of {_versions(self)}")
        whole = replace(self, rows=earlier.rows, notes=(*earlier.notes, *self.notes))
        return reduce(Results.including, self.rows, whole)

    def save(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Results:
        data = json.loads(path.read_text(encoding="utf-8"))
        rows = tuple(measured(row) for row in data.pop("rows"))
        return cls(**{**data, "rows": rows, "notes": tuple(data["notes"])})


def _versions(results: Results) -> dict[str, str | bool]:
    of_machine = {name: text for name, text in results.machine.items() if name != "date"}
    return {**of_machine, "quick": results.quick}


def measured(data: Mapping) -> Measured:
    rivals = {name: side(rival) for name, rival in data["rivals"].items()}
    # neither is in results of before there were any
    limit, older = data.get("limit"), data.get("older")
    others = {"limit": limit and side(limit), "older": older and side(older)}
    sides = {"ours": side(data["ours"]), "rivals": rivals, **others}
    return Measured(**{**data, **sides})


def side(data: Mapping) -> Side:
    return Side(**data)
