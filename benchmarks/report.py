"""Results for people: lines that the terminal's table, the page and the picture share, and that table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rich import box
from rich.console import Group
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from pybridge.quantities import MISSING, seconds, size

from .case import Case, Requirement
from .claims import claims
from .results import OLDER_JAX, Measured, Results, Side
from .suites import cases

_MARKS = {True: ("met", "green"), False: ("not met", "bold red"), None: ("", "dim")}


@dataclass(frozen=True)
class Line:
    """A row against one of its rivals. met: nothing where nothing is required."""

    case: Case
    row: Measured
    rival: str
    required: float | None

    @property
    def ratio(self) -> float | None:
        return self.row.ratio(self.rival)

    @property
    def met(self) -> bool | None:
        return self.row.met(Requirement(self.rival, self.required))

    @property
    def against(self) -> str:
        """The rival's name, and whether it ran with XLA's flag."""
        return f"{self.rival}, flag" if self.row.rivals[self.rival].flagged else self.rival

    @property
    def times(self) -> tuple[str, str]:
        """pybridge's and the rival's."""
        return _time(self.row, self.row.ours), _time(self.row, self.row.rivals[self.rival])


@dataclass(frozen=True)
class LimitLine:
    """A row against what is written by hand. most: how many times its time is allowed, if anything is."""

    case: Case
    row: Measured
    limit: Side
    most: float | None

    @property
    def met(self) -> bool | None:
        if self.most is None:
            return None
        return self.row.agrees and self.row.over_limit is not None and self.row.over_limit <= self.most

    @property
    def required_time(self) -> str:
        """The longest time that is what is required of the row against its rivals."""
        sides = (
            (s.seconds, _required(self.case, name, self.row.threads)) for name, s in self.row.rivals.items()
        )
        return seconds(min((time / ratio for time, ratio in sides if time and ratio), default=None))

    @property
    def cells(self) -> tuple[str, ...]:
        """pybridge's time, that by hand, how many times as long pybridge takes, and what is allowed."""
        times = seconds(self.row.ours.seconds), seconds(self.limit.seconds)
        return *times, figure(self.row.over_limit), figure(self.most)


def limit_lines(results: Results) -> Iterator[LimitLine]:
    """Of the rows whose limits were measured; there are none in older results."""
    for case in cases():
        for row in results.of(case.name):
            if row.limit is not None:
                most = None if results.quick or case.limit is None else case.limit.most
                yield LimitLine(case, row, row.limit, most)


def lines(results: Results) -> Iterator[Line]:
    """In the order of the table."""
    for case in cases():
        for row in results.of(case.name):
            for rival in case.rivals:
                required = None if results.quick else _required(case, rival, row.threads)
                yield Line(case, row, rival, required)


def _required(case: Case, rival: str, threads: int) -> float | None:
    ratios = [r.ratio for r in case.requirements if r.rival == rival and r.threads in (None, threads)]
    return next(iter(ratios), None)


def table(results: Results) -> Group:
    grid = Table(box=box.HORIZONTALS, padding=(0, 1))
    for name in ("benchmark", "against"):
        grid.add_column(name)
    for name in (
        "threads",
        "pybridge",
        "rival",
        "times as\nfast",
        "required",
        "",
        "first result\nboth",
        "error\nboth",
    ):
        grid.add_column(name, justify="right", no_wrap=True)
    grid.add_column("memory\nboth", justify="right", no_wrap=True)
    shown: set[tuple[str, int]] = set()
    for line in lines(results):
        row, again = line.row, (line.row.case, line.row.threads) in shown
        shown.add((row.case, row.threads))
        met, colour = _MARKS[line.met]
        rival = row.rivals[line.rival]
        grid.add_row(
            "" if again else escape(line.case.title),
            line.against,
            str(row.threads),
            *line.times,
            figure(line.ratio),
            figure(line.required),
            Text(met, colour),
            f"{seconds(row.ours.first)} {seconds(rival.first)}",
            "" if again else _error(row),
            "" if again else _memory(row),
        )
    by_hand = list(limit_lines(results))
    return Group(grid, *([_limit_table(by_hand)] if by_hand else []), *_notes(results))


def _limit_table(by_hand: Iterable[LimitLine]) -> Table:
    grid = Table(box=box.HORIZONTALS, padding=(0, 1))
    grid.add_column("benchmark")
    for name in ("pybridge", "by hand", "times its\ntime", "at most", ""):
        grid.add_column(name, justify="right", no_wrap=True)
    for line in by_hand:
        met, colour = _MARKS[line.met]
        grid.add_row(escape(line.case.title), *line.cells, Text(met, colour))
    return grid


def _error(row: Measured) -> Text:
    if row.ours.error is None:
        return Text("agrees" if row.agrees else "failed", "green" if row.agrees else "bold red")
    agrees = row.agrees and row.error_met() is not False
    return Text(" ".join(f"{error:.1e}" for error in row.errors), "green" if agrees else "bold red")


def _memory(row: Measured) -> Text:
    if row.ours.memory is None:
        return Text(MISSING)
    return Text(f"{size(row.ours.memory)} {size(row.reference_memory)}", _MARKS[row.memory_met()][1])


def _notes(results: Results) -> Iterator[Text]:
    for claim in claims(results):
        met, colour = _MARKS[claim.met]
        yield Text.assemble(claim.text, ": ", (met, colour))
    for row, name, side in failures(results):
        yield Text(f"{row.case}, {name}, {row.threads} thread(s): {side.failure}", "bold red")
    yield Text(environment(results), "dim")


def failures(results: Results) -> Iterator[tuple[Measured, str, Side]]:
    for row in results.rows:
        others = {"by hand": row.limit or Side(), OLDER_JAX: row.older or Side()}
        for name, side in {"pybridge": row.ours, **row.rivals, **others}.items():
            if side.failure:
                yield row, name, side


def passed(results: Results) -> bool:
    """Whether every requirement is met that is one at these sizes: quick ones are held to agreement alone."""
    if results.quick:
        return all(row.agrees and not (row.limit and row.limit.failure) for row in results.rows)
    required = [line.met for line in lines(results)] + [line.met for line in limit_lines(results)]
    required += [met for row in results.rows for met in (row.memory_met(), row.error_met())]
    return False not in required and all(claim.met for claim in claims(results))


def environment(results: Results) -> str:
    start = f"; Julia's start took {results.julia_start:.2f} s" if results.julia_start else ""
    quick = "; small sizes, whose times mean nothing" if results.quick else ""
    return ", ".join(f"{k} {v}" for k, v in results.machine.items()) + start + quick


def _time(row: Measured, side: Side) -> str:
    return seconds(side.first if row.cold else side.seconds)


def figure(value: float | None) -> str:
    return MISSING if value is None else f"{value:.3g}"
