"""A comparison for people: a rich table with notes under it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from ._columns import Column, columns
from ._notes import COLOURS, notes

if TYPE_CHECKING:
    from ._comparison import Comparison


def table(comparison: Comparison) -> Layout:
    return Layout(comparison)


@dataclass(frozen=True, eq=False)
class Layout:
    """One table, or where that is too wide several with some of the columns each; then the notes."""

    comparison: Comparison

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        there = columns(self.comparison.reference.second is not None)

        def fits(start: int, end: int) -> bool:
            unbounded = options.update(max_width=1000)
            grid = self._grid(there[start:end], start == 0)
            return Measurement.get(console, unbounded, grid).maximum <= options.max_width

        start, last = 0, len(there)
        while start < last:
            end = next((end for end in range(last, start, -1) if fits(start, end)), start + 1)
            yield self._grid(there[start:end], start == 0)
            start = end
        yield from notes(self.comparison)

    def _grid(self, chosen: tuple[Column, ...], titled: bool) -> Table:
        c = self.comparison
        title = f"{escape(c.function)}({escape(c.arguments)}), seed {c.seed}" if titled else None
        grid = Table(title=title, title_justify="left", box=box.HORIZONTALS, padding=(0, 1))
        grid.add_column("engine", no_wrap=True)
        for column in chosen:
            grid.add_column(column.lines, justify="right", no_wrap=True)
        for row in c.rows:
            cells = [Text(column.cell(row)) for column in chosen]
            for cell in cells:
                cell.highlight_regex(r"\d+ misplaced", "red")
            engine = Text.assemble(row.engine, "\n", (row.state, COLOURS[row.state]))
            grid.add_row(engine, *cells, end_section=True)
        return grid
