"""A report of mixed precision for people, in 80 columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich import box
from rich.console import Group
from rich.markup import escape
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from ._report import Kept, Precision

_SHOWN = 12


def table(found: Precision) -> Group:
    return Group(*_parts(found))


def _parts(found: Precision) -> Iterator[Table | Text]:
    yield Text(f"{found.function}({found.arguments})", "italic")
    asked = f"{found.error:.1e}" + (f" and {found.absolute:.1e} absolute" if found.absolute else "")
    yield Text.assemble(
        (f"{found.narrow} of {found.total} equations in 32 bits", "bold"),
        f"; error asked for {asked}, bound {found.bound:.1e} ({found.bound_in_64:.1e} all in 64 bits),",
    )
    nearby = "" if found.nearby is None else f", {found.nearby:.1e} at arguments around them"
    yield Text(f"measured {found.measured:.1e} at the example's arguments{nearby}.")
    if found.kept:
        yield _kept(found.kept)
        if len(found.kept) > _SHOWN:
            rest = len(found.kept) - _SHOWN
            yield Text(f"and {rest} more; {len(found.lines)} lines have equations in 64 bits.")
    if found.uncovered:
        yield Text(f"The errors of {', '.join(found.uncovered)} are not known: they stay in 64 bits.")


def _kept(kept: tuple[Kept, ...]) -> Table:
    grid = Table(box=box.HORIZONTALS, padding=(0, 1))
    for name in ("stays in 64 bits", "equation", "error in 32", "because"):
        grid.add_column(name, justify="right" if name == "error in 32" else "left")
    for k in kept[:_SHOWN]:
        where = ", ".join(filter(None, (k.source, *k.place)))
        grid.add_row(escape(where), escape(f"{k.number}: {k.op}"), f"{k.error:.1g} x asked", k.reason)
    return grid
