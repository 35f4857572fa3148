"""A comparison in Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ._columns import columns
from ._notes import notes

if TYPE_CHECKING:
    from ._comparison import Comparison


def markdown(comparison: Comparison) -> str:
    return "\n".join(_lines(comparison))


def _lines(c: Comparison) -> Iterator[str]:
    there = columns(c.reference.second is not None)
    yield f"**`{c.function}({c.arguments})`**, seed {c.seed}"
    yield ""
    yield _row(["engine", *(f"`{column.heading}`" for column in there)])
    yield "|---" * (len(there) + 1) + "|"
    for row in c.rows:
        cells = (column.cell(row).replace("\n", "<br>") for column in there)
        yield _row([f"{row.engine}<br>{row.state}", *cells])
    yield ""
    yield from (f"- {_escaped(note.plain)}" for note in notes(c))


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"


def _escaped(text: str) -> str:
    return text.replace("<", "&lt;").replace("*", "&#42;").replace("_", "&#95;")
