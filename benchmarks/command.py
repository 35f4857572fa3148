"""The command line of the benchmarks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from pybridge.errors import PyBridgeError, UnknownOption

from . import page, picture, report, runner
from .results import Results
from .suites import SUITES, Suite

_ROOT = Path(__file__).resolve().parent.parent
_WIDTH = 190  # where the output is no terminal


app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def bench(
    names: Annotated[
        list[str] | None, typer.Argument(help="Names or their beginnings; all by default.")
    ] = None,
    suite: Annotated[str, typer.Option(help=f"Of what: {', '.join(SUITES)}.")] = "rows",
    threads: Annotated[str, typer.Option(help="Numbers with commas between.")] = "1,2",
    quick: Annotated[
        bool, typer.Option("--quick", help="Small sizes: whether it works, not how fast.")
    ] = False,
    show_rows: Annotated[bool, typer.Option("--list", help="Name the rows, and measure nothing.")] = False,
    json: Annotated[Path | None, typer.Option(help="Write the numbers to this file.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Write the picture: .png, .svg or .pdf.")] = None,
    docs: Annotated[
        bool, typer.Option("--docs", help="Write the page in docs/ and, of rows, README's table.")
    ] = False,
    load: Annotated[Path | None, typer.Option(help="Show the numbers of this file; measure nothing.")] = None,
) -> None:
    """Measure pybridge's native kernels beside JAX. Status 1 if a row misses what is required of it."""
    try:
        _bench(_suite(suite), names or [], threads, quick, show_rows, json, plot, docs, load)
    except PyBridgeError as error:
        Console(stderr=True).print(f"[red]{type(error).__name__}:[/] {error}")
        raise typer.Exit(2 if isinstance(error, UnknownOption) else 1) from None


def _bench(suite, names, threads, quick, show_rows, json, plot, docs, load) -> None:
    if show_rows:
        for case in suite.cases:
            typer.echo(f"{case.name:22} {case.title}")
        return
    if load is not None:
        measured = Results.load(load)
    else:
        chosen = _chosen(suite.cases, names)
        with Console(stderr=True).status("measuring") as status:
            measured = runner.run(
                chosen, _counts(threads), quick, lambda doing: status.update(f"measuring {doing}")
            )
    console = Console()
    (console if console.is_terminal else Console(width=_WIDTH)).print(report.table(measured))
    for path in _written(suite, measured, json, plot, docs):
        typer.echo(f"wrote {path}")
    raise typer.Exit(0 if report.passed(measured) else 1)


def _written(suite: Suite, measured, json: Path | None, plot: Path | None, docs: bool):
    if json is not None:
        measured.save(json)
        yield json
    shown = f"{suite.page}.png"
    for path in filter(None, (plot, _ROOT / "docs" / shown if docs else None)):
        picture.save(measured, path)
        yield path
    if docs:
        yield from page.write(suite, measured, _ROOT, shown)


def _suite(name: str) -> Suite:
    if name not in SUITES:
        raise UnknownOption(f"there is no suite {name!r}; there are {', '.join(SUITES)}")
    return SUITES[name]


def _chosen(cases, names: list[str]) -> list:
    unknown = [name for name in names if not any(case.name.startswith(name) for case in cases)]
    if unknown:
        known = ", ".join(case.name for case in cases)
        raise UnknownOption(f"there is no benchmark {unknown[0]!r}; there are {known}")
    return [case for case in cases if not names or case.name.startswith(tuple(names))]


def _counts(threads: str) -> list[int]:
    try:
        counts = sorted({int(count) for count in threads.split(",")})
    except ValueError:
        counts = []
    if not counts or counts[0] < 1:
        raise UnknownOption(f"--threads takes numbers with commas between, such as 1,2; got {threads!r}")
    return counts
