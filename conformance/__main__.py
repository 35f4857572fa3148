"""`python -m conformance` prints the page docs/primitives.md; --write writes it, --check compares."""

from __future__ import annotations

from typing import Annotated

import typer

from pybridge.runtime.rule_table import jaxprad_rules

from . import PAGE, apart, lines, measured_exports, text


def main(
    write: Annotated[bool, typer.Option("--write", help="Write docs/primitives.md.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Status 1 if docs/primitives.md differs.")] = False,
) -> None:
    """Say what there is of each of JAX's primitives."""
    page = text(lines(jaxprad_rules(), measured_exports()), apart())
    if write:
        PAGE.write_text(page)
    elif not check:
        typer.echo(page, nl=False)
    elif PAGE.read_text() != page:
        typer.echo(f"{PAGE} is out of date: python -m conformance --write", err=True)
        raise typer.Exit(1)


typer.run(main)
