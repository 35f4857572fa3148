"""`python -m tests.times FOLDER`: where the time of `make test` went, by part, cause and file."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from tests.quick.choice import ROOT, SECONDS, known_seconds

_UNKNOWN = "the rest, mostly JaxprAD's own code and the tests'"


@dataclass(frozen=True)
class Part:
    """name: as `.ci/part` was given it. begin, end: seconds of the clock. processor: of all cores."""

    name: str
    begin: float
    end: float
    processor: float


@dataclass(frozen=True)
class Record:
    """seconds: by cause, of a test or, of Julia's, of a file."""

    part: str
    file: str
    seconds: dict[str, float]

    @property
    def total(self) -> float:
        return sum(self.seconds.values())


def parts(folder: Path) -> list[Part]:
    found = []
    for line in _lines(folder.glob("parts.tsv")):
        name, begin, end, user, system = line.split("\t")
        found.append(Part(name, float(begin), float(end), float(user) + float(system)))
    return sorted(found, key=lambda part: part.begin)


def records(folder: Path) -> list[Record]:
    found = []
    for line in _lines(folder.glob("python-*.jsonl")):
        told = json.loads(line)
        found.append(Record(told["part"], told["file"], told["seconds"]))
    for line in _lines(folder.glob("julia-*.tsv")):
        file, seconds, *causes = line.split("\t")
        by_cause = {name: float(value) for name, _, value in (cause.partition("=") for cause in causes)}
        rest = max(0.0, float(seconds) - sum(by_cause.values()))
        found.append(Record("Julia", file, {**by_cause, _UNKNOWN: rest}))
    return found


def _lines(files: Iterable[Path]) -> Iterable[str]:
    for file in sorted(files):
        yield from file.read_text(encoding="utf-8").splitlines()


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for i, column in enumerate(columns):
        table.add_column(column, justify="right" if i else "left", no_wrap=True)
    return table


def by_part(found: list[Part]) -> Table:
    table = _table("parts", "part", "begins at, s", "seconds", "processor seconds")
    for part in found:
        begin = part.begin - found[0].begin
        table.add_row(part.name, f"{begin:.0f}", f"{part.end - part.begin:.0f}", f"{part.processor:.0f}")
    if found:
        whole = max(part.end for part in found) - found[0].begin
        table.add_row("all", "0", f"{whole:.0f}", f"{sum(part.processor for part in found):.0f}")
    return table


def by_cause(found: list[Record]) -> Iterable[Table]:
    seconds: dict[str, Counter[str]] = defaultdict(Counter)
    for record in found:
        seconds[record.part].update(record.seconds)
    for part, causes in seconds.items():
        table = _table(f"{part}, all processes", "cause", "seconds", "%")
        for cause, value in causes.most_common():
            table.add_row(cause, f"{value:.0f}", f"{100 * value / causes.total():.0f}")
        yield table


def by_file(found: list[Record], most: int) -> Iterable[Table]:
    grouped: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    for record in found:
        grouped[record.part][record.file].update(record.seconds)
    for part, files in grouped.items():
        table = _table(f"{part}, by file", "file", "seconds", "most of it")
        slowest = sorted(files.items(), key=lambda item: -item[1].total())
        for file, causes in slowest[:most]:
            largest = ", ".join(f"{cause} {value:.0f}" for cause, value in causes.most_common(3))
            table.add_row(file, f"{causes.total():.0f}", largest)
        rest = sum(causes.total() for _, causes in slowest[most:])
        if rest:
            table.add_row(f"{len(slowest) - most} others", f"{rest:.0f}", "")
        yield table


def keep(found: list[Record]) -> None:
    """Each test file's seconds, of one Python, where `make test-quick` reads them."""
    seconds: Counter[str] = Counter()
    newest = max((r.part for r in found if r.part != "Julia"), default="")
    for record in found:
        path = f"julia/test/{record.file}.jl" if record.part == "Julia" else record.file
        if record.part in ("Julia", newest) and (ROOT / path).is_file():
            seconds[path] += record.total
    known = {**known_seconds(), **seconds}
    lines = (f"{path}\t{known[path]:.1f}\n" for path in sorted(known) if (ROOT / path).is_file())
    SECONDS.write_text("".join(lines), encoding="utf-8")


def main(
    folder: Annotated[Path, typer.Argument(help="The records, as PYBRIDGE_TEST_TIMES named it.")],
    write: Annotated[bool, typer.Option("--write", help="Keep each file's for `make test-quick`.")] = False,
    files: Annotated[int, typer.Option(help="How many files of each part; 0 for none.")] = 0,
) -> None:
    console = Console(highlight=False, width=140)
    found = records(folder)
    console.print(by_part(parts(folder)))
    if write:
        keep(found)
    for table in [*by_cause(found), *(by_file(found, files) if files else ())]:
        console.print()
        console.print(table)


if __name__ == "__main__":
    typer.run(main)
