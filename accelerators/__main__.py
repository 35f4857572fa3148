"""`python -m accelerators`: exports to run on a GPU or TPU, and what was found there as a table."""

from __future__ import annotations

from fnmatch import fnmatchcase
from itertools import chain
from pathlib import Path
from typing import Annotated

import typer

from . import entries, folder, page

app = typer.Typer(add_completion=False, rich_markup_mode=None, help=__doc__)


@app.command()
def write(
    target: Annotated[Path, typer.Argument(help="A folder that does not exist.")],
    names: Annotated[list[str] | None, typer.Argument(help="Patterns of names; all by default.")] = None,
) -> None:
    """Export the tests' cases and the benchmarks, with arguments and what is right."""

    def wanted(name: str) -> bool:
        return not names or any(fnmatchcase(name, pattern) for pattern in names)

    for entry in folder.write(target, chain(entries.cases(wanted), entries.rows(wanted))):
        typer.echo(f"{entry.name}: {entry}")


@app.command(name="page")
def write_page(results: Annotated[Path, typer.Argument(help="What run.py wrote.")]) -> None:
    """Write what was found into docs/accelerators.md."""
    page.write(entries.ROOT / "docs" / "accelerators.md", results)


app()
