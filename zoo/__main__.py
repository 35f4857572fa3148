"""`python -m zoo`: runs the problems on each version of JAX and writes docs/measurements/zoo.md."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from .environments import ENVIRONMENTS, ROOT, EnvironmentFailed
from .page import write
from .problem import Problem
from .results import Result
from .runner import RESULTS, load, run
from .table import PROBLEMS


def main(
    names: Annotated[
        list[str] | None, typer.Argument(help="Problems or packages; all of them, if none.")
    ] = None,
    python: Annotated[list[Path] | None, typer.Option(help="Interpreters with everything installed.")] = None,
    limit: Annotated[float, typer.Option(help="Seconds for a problem.")] = 240.0,
    again: Annotated[bool, typer.Option(help="Run what has a result of these sources, too.")] = False,
) -> None:
    console = Console(highlight=False)
    chosen = [p for p in PROBLEMS if not names or any(p.name == n or p.module == n for n in names)]
    if not chosen:
        raise typer.BadParameter(f"no problem is named {' or '.join(names or [])}")
    for executable in python or _made(console):
        console.rule(str(executable))
        for problem, result in run(chosen, executable, limit, again):
            console.print(_line(problem, result))
    tables = [load(file) for file in sorted(RESULTS.glob("jax-*.json"), reverse=True)]
    write(ROOT / "docs" / "measurements" / "zoo.md", PROBLEMS, tables)


def _made(console: Console) -> list[Path]:
    """The environments that can be had here; why not, of the others, is said."""
    found = []
    for environment in ENVIRONMENTS:
        console.print(f"Python {environment.python}, {environment.requirements}: installing what is missing")
        try:
            found.append(environment.executable())
        except EnvironmentFailed as failure:
            console.print(f"[red]{failure}")
    return found


def _line(problem: Problem, result: Result) -> str:
    wrong = result.complaints(problem.absent)
    speeds = ", ".join(
        f"{name} {got.times_as_fast:.2f}" for name, got in result.derivatives.items() if got.times_as_fast
    )
    said = f"[red]{'; '.join(wrong)}" if wrong else f"[green]yes[/] {speeds}"
    return f"{problem.name:32} {said}"


if __name__ == "__main__":
    typer.run(main)
