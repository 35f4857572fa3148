"""The command of the sweep: measures, shows wrong choices, and what rates would make them right."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from benchmarks.processes import Worker, WorkerFailed
from pybridge.errors import UnknownOption

from .families import FAMILIES, Problem, problems
from .measured import AUTO, LEFT, NATIVE, XLA, Measurement, append, load, rates

_PATIENCE = 60.0  # seconds for a problem, most of which are its compilations
_WIDTH = 170  # where the output is no terminal

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def sweep(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Patterns of families, such as 'conv*'; all by default."),
    ] = None,
    dtypes: Annotated[str, typer.Option(help="With commas between; all by default.")] = "",
    sizes: Annotated[str, typer.Option(help="With commas between; all by default.")] = "",
    threads: Annotated[int, typer.Option(help="How many the worker may use.")] = 1,
    json: Annotated[
        Path | None,
        typer.Option(help="Append each measurement to this file, and measure none that is there."),
    ] = None,
    load: Annotated[Path | None, typer.Option(help="Judge the measurements of this file; take none.")] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Of those in the file, measure again what is wrong or failed.")
    ] = False,
    fit: Annotated[
        Path | None, typer.Option(help="Show the rates that the measurements of this file imply.")
    ] = None,
) -> None:
    """Find out where execute="auto" is wrong. Status 1 if it is anywhere."""
    console = Console()
    console = console if console.is_terminal else Console(width=_WIDTH)
    chosen = _chosen(names or [], _words(dtypes), _words(sizes))
    if fit is not None:
        console.print(_rates(_among(chosen, fit)))
        raise typer.Exit(0)
    measured = _among(chosen, load) if load is not None else _measured(chosen, threads, json, again)
    _show(console, measured)
    raise typer.Exit(1 if any(one.is_wrong for one in measured) else 0)


def _words(text: str) -> list[str]:
    return [word for word in text.split(",") if word]


def _chosen(names: list[str], dtypes: list[str], sizes: list[str]) -> list[Problem]:
    unknown = [name for name in names if not any(fnmatchcase(family, name) for family in FAMILIES)]
    if unknown:
        raise UnknownOption(f"there is no family {unknown[0]!r}; there are {', '.join(FAMILIES)}")
    return [
        problem
        for problem in problems()
        if (not names or any(fnmatchcase(problem.family.name, name) for name in names))
        and (not dtypes or problem.dtype in dtypes)
        and (not sizes or problem.size in sizes)
    ]


def _among(chosen: Iterable[Problem], path: Path) -> list[Measurement]:
    names = {problem.name for problem in chosen}
    return [one for one in load(path) if one.problem in names]


# ---- measuring


def _measured(chosen: list[Problem], threads: int, json: Path | None, again: bool) -> list[Measurement]:
    known = {} if json is None else {one.problem: one for one in load(json)}
    skipped = {name for name, one in known.items() if not (again and (one.is_wrong or one.failure))}
    left = [problem for problem in chosen if problem.name not in skipped]
    with Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task("", total=len(left))
        for one in _answers([problem.name for problem in left], threads):
            known[one.problem] = one
            if json is not None:
                append(json, one)
            progress.update(task, advance=1, description=one.problem)
    return [known[problem.name] for problem in chosen]


def _answers(names: list[str], threads: int) -> Iterator[Measurement]:
    """A process measures one after the other. It ends at one that takes too long, and another goes on."""
    left = iter(names)
    failed = True
    while failed:
        failed = False
        words = ("-m", "benchmarks.sweep.worker", str(threads))
        with Worker(*words, variables={}, patience=_PATIENCE) as worker:
            for name in left:
                try:
                    yield Measurement(**worker.ask(name))
                except WorkerFailed as failure:
                    yield Measurement(name, failure=str(failure))
                    failed = True
                    break


# ---- showing


def _show(console: Console, measured: list[Measurement]) -> None:
    timed = [one for one in measured if not one.failure]
    wrong = sorted((one for one in timed if one.is_wrong), key=lambda one: -one.chosen / one.best)
    console.print(_times("Wrong choices", wrong))
    behind = sorted((one for one in timed if one.is_behind), key=lambda one: -one.best / one.seconds[XLA])
    console.print(_times('Whatever is chosen, slower than execute="xla"', behind))
    for one in measured:
        if one.failure:
            console.print(f"{one.problem}: {one.failure}", highlight=False)
    console.print(
        f"{len(wrong)} of {len(timed)} choices are wrong; {len(measured) - len(timed)} not measured"
    )


def _times(title: str, several: list[Measurement]) -> Table:
    sides = {NATIVE: "native", XLA: "XLA", LEFT: "left to XLA", AUTO: "both"}
    columns = (*(f"{side}, µs" for side in sides.values()), "times the best", "times XLA", "expected, µs")
    table = Table("problem", "chosen", *columns, title=title)
    for one in several:
        times = [_microseconds(one.seconds.get(side)) for side in sides]
        ratios = [f"{one.chosen / other:.2f}" for other in (one.best, one.seconds[XLA])]
        expected = f"{one.estimate.native / 1e3:.3g}, {one.estimate.xla / 1e3:.3g}"
        table.add_row(one.problem, one.choice, *times, *ratios, expected)
    return table


def _microseconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{1e6 * seconds:.3g}"


def _rates(measured: list[Measurement]) -> Table:
    columns = ("operation", "dtype", "native", "by the model", "XLA", "by the model", "measurements")
    table = Table(*columns, title="nanoseconds of a unit of work")
    for rate in rates(measured):
        pairs = ((rate.implied.native, rate.assumed.native), (rate.implied.xla, rate.assumed.xla))
        numbers = [f"{x:.3g}" for pair in pairs for x in pair]
        table.add_row(rate.op, rate.dtype, *numbers, str(rate.measurements))
    return table


if __name__ == "__main__":
    app(prog_name="python -m benchmarks.sweep")
