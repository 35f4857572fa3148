"""A comparison for people: a rich table with notes under it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from ._nestings import NESTINGS
from ._rows import Error, Row, Second, SecondReference

if TYPE_CHECKING:
    from ._comparison import Comparison

_COLOURS = {"agrees": "green", "disagrees": "bold red", "failed": "yellow", "unavailable": "dim"}
_NONE = "-"
_CANNOT = "cannot"
_SHORT = dict(zip(NESTINGS, ("F/R", "R/F", "R/R"), strict=True))
_COLUMNS = (
    "value\nerror",
    "JVP\nerror",
    "VJP\nerror",
    "<u,Jv>\n=<J'u,v>",
    "Taylor\norder",
    "equa-\ntions",
    "first\ngradient",
    "value\ntime",
    "VJP\ntime",
)
_SECOND = (*(f"HVP {_SHORT[n]}\nerror" for n in NESTINGS), "<w,Hv>\n=<v,Hw>", "Taylor\nof HVP")


def table(comparison: Comparison) -> Layout:
    return Layout(comparison)


@dataclass(frozen=True, eq=False)
class Layout:
    """One table, or where that is too wide several with some of the columns each; then the notes."""

    comparison: Comparison

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        def fits(start: int, end: int) -> bool:
            unbounded = options.update(max_width=1000)
            grid = _grid(self.comparison, start, end)
            return Measurement.get(console, unbounded, grid).maximum <= options.max_width

        start, last = 0, len(_columns(self.comparison))
        while start < last:
            end = next((end for end in range(last, start, -1) if fits(start, end)), start + 1)
            yield _grid(self.comparison, start, end)
            start = end
        yield from _notes(self.comparison)


def _columns(comparison: Comparison) -> tuple[str, ...]:
    return _COLUMNS if comparison.reference.second is None else (*_COLUMNS, *_SECOND)


def _grid(comparison: Comparison, start: int, end: int) -> Table:
    """The table with some of the columns."""
    c = comparison
    title = f"{escape(c.function)}({escape(c.arguments)}), seed {c.seed}" if start == 0 else None
    grid = Table(title=title, title_justify="left", box=box.HORIZONTALS, padding=(0, 1))
    grid.add_column("engine", no_wrap=True)
    for name in _columns(c)[start:end]:
        grid.add_column(name, justify="right", no_wrap=True)
    for row in c.rows:
        engine, *cells = _cells(row)
        cells += _second_cells(row) if c.reference.second else []
        grid.add_row(engine, *cells[start:end], end_section=True)
    return grid


def _cells(row: Row) -> Iterator[Text | str]:
    yield Text.assemble(row.engine, "\n", (row.state, _COLOURS[row.state]))
    yield from (_error(e) for e in (row.value, row.jvp, row.vjp))
    yield _NONE if row.adjoint is None else f"{row.adjoint:.1e}"
    yield "\n".join(str(t) if t else _NONE for t in (row.taylor_jvp, row.taylor_vjp)) if row.ran else _NONE
    yield _NONE if row.equations is None else str(row.equations)
    yield _NONE if row.first_gradient is None else seconds(row.first_gradient)
    t = row.times
    yield _time(t.value, t.value_ratio) if t else _NONE
    yield _time(t.vjp, t.vjp_ratio) if t else _NONE


def _second_cells(row: Row) -> Iterator[Text | str]:
    second = row.second or Second()
    for nesting in NESTINGS:
        yield _CANNOT if second.cannot else _error(second.errors.get(nesting))
    yield _NONE if second.symmetry is None else f"{second.symmetry:.1e}"
    yield str(second.taylor) if second.taylor else _NONE


def _error(error: Error | None) -> str:
    if error is None:
        return _NONE
    lines = [f"{error.absolute:.1e}", f"{error.relative:.1e}"]
    if error.nonfinite:
        lines.append(f"{error.nonfinite} NaN/inf")
    if error.misplaced:
        lines.append(f"[red]{error.misplaced} misplaced[/]")
    return "\n".join(lines)


def _time(value: float | None, ratio: float | None) -> str:
    if value is None:
        return _NONE
    return seconds(value) + (f"\n{ratio:.2f} x jax" if ratio is not None else "")


def seconds(value: float) -> str:
    """With three digits and a unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e-6:.3g} µs"


def _notes(comparison: Comparison) -> Iterator[Text]:
    r = comparison.reference
    difference = _NONE if r.finite_difference is None else f"{r.finite_difference:.1e}"
    yield from _verdicts(comparison)
    yield Text(
        f"Errors: largest absolute, largest relative, against JAX in {r.precision}. That reference itself: "
        f"{difference} off central differences, Taylor order {r.taylor_jvp} (JVP) and {r.taylor_vjp} (VJP); "
        "2 is right."
    )
    if r.second is not None:
        yield from _second_notes(comparison, r.second)
    for row in comparison.rows:
        state = (f"{row.engine} {row.state}", _COLOURS[row.state])
        for reason in row.disagreements:
            yield Text.assemble(state, f": {reason}")
        for reason in row.reasons:
            told = (
                row.engine if row.ran and not row.failed else (f"{row.engine} failed" if row.ran else state)
            )
            yield Text.assemble(told, f": {reason}")
    for row in comparison.rows:
        if row.isolated:
            yield Text(f"{row.engine} ran in a process of its own, with its times beside those of jax there.")
    yield from (Text(f"Note: {note}.") for note in _remarks(comparison))
    if comparison.machine:
        yield Text(", ".join(f"{key} {value}" for key, value in comparison.machine.items()), style="dim")


def _second_notes(comparison: Comparison, second: SecondReference) -> Iterator[Text]:
    if second.note:
        yield Text(f"Second derivative: {second.note}.")
        return
    told, colour = _DERIVATIVE[second.derivative]
    told = told.replace("of its value", "of the first")
    yield Text.assemble("Second derivative: ", (told, colour), ", by difference quotients.")
    difference = _NONE if second.finite_difference is None else f"{second.finite_difference:.1e}"
    yield Text(
        "HVP: forward over reverse (F/R), reverse over forward (R/F), reverse over reverse (R/R). The "
        f"reference: {difference} off central differences of its gradient, Taylor order "
        f"{second.taylor or _NONE}; 3 is right."
    )
    for row in comparison.rows:
        if row.second and row.second.cannot:
            yield Text(f"{row.engine} cannot: {row.second.cannot}.")


_DERIVATIVE = {
    "right": ("that of its value", "green"),
    "wrong": ("not that of its value", "bold red"),
    "unclear": ("not checked, since difference quotients do not settle", "yellow"),
}


def _verdicts(comparison: Comparison) -> Iterator[Text]:
    """Two, which are independent: engines can agree in a derivative that is wrong."""
    agrees = ("agree", "green") if comparison.agrees() else ("do not agree", "bold red")
    yield Text.assemble("Engines: ", agrees, ".")
    yield Text.assemble("Derivative: ", _DERIVATIVE[comparison.derivative], ", by difference quotients.")
    if comparison.derivative == "wrong":
        yield Text(
            "All engines take the function's own rules (stop_gradient, custom_jvp, custom_vjp …); "
            "`pybridge check` names those that are no derivatives."
        )


def _remarks(comparison: Comparison) -> Iterator[str]:
    yield from comparison.reference.notes
    for row in comparison.rows:
        if row.value and row.value.nonfinite:
            yield f"the value of {row.engine} has {row.value.nonfinite} elements that are NaN or infinite"
        yield from (f"{text} of {row.engine} is taken for rounding" for text in row.rounded)
