"""The command line of the benchmarks."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from pybridge.errors import PyBridgeError, UnknownOption

from . import page, picture, report, runner
from .case import Case
from .results import Results
from .suites import SUITES, Suite

_ROOT = Path(__file__).resolve().parent.parent
_WIDTH = 190  # where the output is no terminal


app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def bench(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Names, their beginnings, or patterns such as '*-small'; all by default."),
    ] = None,
    suite: Annotated[str, typer.Option(help=f"Of what: {', '.join(SUITES)}.")] = "rows",
    threads: Annotated[str, typer.Option(help="Numbers with commas between.")] = "1,2",
    quick: Annotated[
        bool, typer.Option("--quick", help="Small sizes: whether it works, not how fast.")
    ] = False,
    show_rows: Annotated[bool, typer.Option("--list", help="Name the rows, and measure nothing.")] = False,
    json: Annotated[
        Path | None, typer.Option(help="Write the numbers to this file, row by row as they are measured.")
    ] = None,
    add: Annotated[
        bool, typer.Option("--add", help="Keep those rows of that file that are not measured now.")
    ] = False,
    plot: Annotated[Path | None, typer.Option(help="Write the picture: .png, .svg or .pdf.")] = None,
    docs: Annotated[
        bool, typer.Option("--docs", help="Write the suite's page in docs/ and, of rows, README's table.")
    ] = False,
    load: Annotated[Path | None, typer.Option(help="Show the numbers of this file; measure nothing.")] = None,
) -> None:
    """Compare pybridge's native kernels with JAX. Status 1 if a row misses what is required of it."""
    try:
        _bench(_suite(suite), names or [], threads, quick, show_rows, json, add, plot, docs, load)
    except PyBridgeError as error:
        Console(stderr=True).print(f"[red]{type(error).__name__}:[/] {error}")
        raise typer.Exit(2 if isinstance(error, UnknownOption) else 1) from None


def _bench(suite, names, threads, quick, show_rows, json, add, plot, docs, load) -> None:
    if show_rows:
        for case in suite.cases:
            typer.echo(f"{case.name:22} {case.title}")
        return
    if add and json is None:
        raise UnknownOption("--add keeps rows of a file: name it with --json")
    if load is not None:
        measured = Results.load(load)
    else:
        measured = _measured(_chosen(suite.cases, names), _counts(threads), quick, json, add)
    console = Console()
    (console if console.is_terminal else Console(width=_WIDTH)).print(report.table(measured))
    for path in _written(suite, measured, json, plot, docs):
        typer.echo(f"wrote {path}")
    raise typer.Exit(0 if report.passed(measured) else 1)


def _measured(cases, counts: list[int], quick: bool, json: Path | None, add: bool) -> Results:
    """After each row what there is goes to the file, so that a run that ends early leaves its rows."""
    with Console(stderr=True).status("starting Julia") as status:
        measured = runner.begin(counts, quick)
        if add and json is not None and json.exists():
            measured = measured.after(Results.load(json))
        for row in runner.rows(cases, counts, quick, lambda doing: status.update(f"measuring {doing}")):
            measured = measured.including(row)
            if json is not None:
                measured.save(json)
    return measured


def _written(suite: Suite, measured, json: Path | None, plot: Path | None, docs: bool):
    if json is not None:
        measured.save(json)  # also what was loaded
        yield json
    shown = f"{suite.page}.png"
    for path in filter(None, (plot, page.folder(_ROOT) / shown if docs else None)):
        picture.save(measured, path)
        yield path
    if docs:
        yield from page.write(suite, measured, _ROOT, shown)


def _suite(name: str) -> Suite:
    if name not in SUITES:
        raise UnknownOption(f"there is no suite {name!r}; there are {', '.join(SUITES)}")
    return SUITES[name]


def _chosen(cases, names: list[str]) -> list:
    unknown = [name for name in names if not any(_is_named(case, name) for case in cases)]
    if unknown:
        known = ", ".join(case.name for case in cases)
        raise UnknownOption(f"there is no benchmark {unknown[0]!r}; there are {known}")
    return [case for case in cases if not names or any(_is_named(case, name) for name in names)]


def _is_named(case: Case, name: str) -> bool:
    return fnmatchcase(case.name, f"{name}*")


def _counts(threads: str) -> list[int]:
    try:
        counts = sorted({int(count) for count in threads.split(",")})
    except ValueError:
        counts = []
    if not counts or counts[0] < 1:
        raise UnknownOption(f"--threads takes numbers with commas between, such as 1,2; got {threads!r}")
    return counts
