"""Tables, and parts of pages that commands write."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = tuple(head)
    written = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in written) + "\n"


def facts(machine: Mapping[str, str]) -> str:
    """What `measure.machine()` says, in a line."""
    return ", ".join(f"{name}: {value}" for name, value in machine.items())


def between(text: str, name: str, new: str) -> str:
    """The page with `new` between its marks of that name; without marks it stays as it is."""
    before, begin, rest = text.partition(f"<!-- {name} -->\n")
    _, end, after = rest.partition(f"<!-- end of {name} -->")
    return f"{before}{begin}{new}{end}{after}" if begin and end else text
