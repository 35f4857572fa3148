"""A check for people: what was found by argument, and which rules are to blame."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.console import Group
from rich.markup import escape
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from ._check_report import Check, Finding

_COLOURS = {"right": "green", "wrong": "bold red", "unclear": "yellow"}
_WORST = ("wrong", "unclear", "right")


def table(check: Check) -> Group:
    title = f"{escape(check.function)}({escape(check.arguments)})"
    grid = Table(title=title, title_justify="left", box=box.HORIZONTALS, padding=(0, 1))
    for name in ("argument", "result", "JVP", "VJP"):
        grid.add_column(name)
    for argument, result in dict.fromkeys((f.argument, f.result) for f in check.findings):
        pair = [f for f in check.findings if (f.argument, f.result) == (argument, result)]
        grid.add_row(escape(argument), escape(result), *(_cell(pair, mode) for mode in ("JVP", "VJP")))
    return Group(grid, *_notes(check))


def _cell(pair: Sequence[Finding], mode: str) -> Text | str:
    found = next((f for f in pair if f.mode == mode), None)
    return "-" if found is None else Text(found.state, _COLOURS[found.state])


def _notes(check: Check) -> Iterator[Text]:
    for state in _WORST[:2]:
        for finding in check.findings:
            if finding.state == state:
                yield Text(f"{finding}.")
    if check.rules:
        yield Text.assemble(("What is wrong: ", _COLOURS["wrong"]), ", ".join(check.rules), ".")
    if any(f.nearby and f.state == "right" for f in check.findings):
        yield Text("The point itself has a kink or no derivative; what is right is right at points near it.")
    yield from (Text(f"Note: {note}.") for note in check.notes)
    yield Text(f"Checked in {check.precision}, to a relative error of {check.rtol:.0e}.", style="dim")
