"""A report of blame for people, in 80 columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich import box
from rich.console import Group
from rich.markup import escape
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from ._report import Blame, Charge, NonFinite, Rounding

_SHOWN = 10


def table(blame: Blame) -> Group:
    parts: list[Table | Text] = [Text(f"{blame.function}({blame.arguments})", "italic")]
    for found in blame.nonfinite:
        parts += _nonfinite(found)
    if blame.rounding is not None:
        parts += _rounding(blame.rounding)
    if blame.ok:
        parts.append(Text("Nothing to blame.", "green"))
    return Group(*parts, *(Text(f"Note: {note}.") for note in blame.notes))


def _nonfinite(found: NonFinite) -> Iterator[Table | Text]:
    what = "NaN" if found.kind == "nan" else "An infinity"
    yield Text.assemble((f"{what} in the {found.stage}", "bold red"), f", {found.result}:")
    yield from _born(found)
    for cause in found.causes:
        yield Text(f"  Its {'NaN' if cause.kind == 'nan' else 'infinity'} is from")
        yield from _born(cause)
    yield Text.assemble("  ", ("Way out: ", "bold"), found.way_out, ".")


def _born(found: NonFinite) -> Iterator[Text]:
    where = f"  # {found.where}" if found.where else ""
    element = f", element {list(found.index)}" if found.index else ""
    yield Text(f"    {found.equation}{where}{element}")
    for operand in found.operands:
        name = operand.name if operand.name.startswith("%") else "number"
        yield Text(f"      {name} = {operand.value}", style="dim")


def _rounding(rounding: Rounding) -> Iterator[Table | Text]:
    style = "" if rounding.ok else "bold red"
    element = f"{rounding.result}{list(rounding.index) or ''}"
    yield Text.assemble(
        ("Rounding", style or "bold"),
        f": {element} = {rounding.value:.6g}, error at most {rounding.bound:.1e}, {rounding.relative:.1e} of "
        "its magnitude; ",
        f"rounded arguments alone make {rounding.by_arguments:.1e}.",
    )
    if rounding.measured is not None and rounding.coarse_bound is not None:
        yield Text(
            f"By a run in both precisions {rounding.measured:.1e}, where the bound is "
            f"{rounding.coarse_bound:.1e}."
        )
    if rounding.charges and not rounding.ok:
        yield _charges(rounding)
    for c in rounding.cancellations if not rounding.ok else ():
        where = ", ".join(filter(None, (c.source, *c.place)))
        yield Text(f"Cancellation, condition {c.condition:.1e}: {c.op} at {where}.")
    if rounding.uncovered:
        yield Text(f"The bound lacks the errors of {', '.join(rounding.uncovered)}.")


def _charges(rounding: Rounding) -> Table:
    grid = Table(box=box.HORIZONTALS, padding=(0, 1))
    for name in ("line", "equation", "trip", "error", "share"):
        grid.add_column(name, justify="right" if name in ("error", "share") else "left")
    for c in rounding.charges[:_SHOWN]:
        grid.add_row(*_row(c, rounding))
    return grid


def _row(c: Charge, rounding: Rounding) -> list[str]:
    share = f"{c.error / rounding.bound:.0%}" if rounding.bound else ""
    place = ", ".join(c.place).replace("trip ", "")
    return [escape(c.source), escape(f"{c.number}: {c.op}"), place, f"{c.error:.1e}", share]
