"""A Program and its VJP, line of the user's by line."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...frontend.tracing import trace
from ...ir.printer import format_equation
from .._problem import Problem
from ._sources import place_of

_MOST = 500  # equations; what is longer is read in a file


@dataclass
class Group:
    """The equations of one line, as text. code: the line."""

    source: str
    code: str
    program: list[str] = field(default_factory=list)
    derivative: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class SideBySide:
    """note: what is not shown, and why."""

    groups: tuple[Group, ...] = ()
    note: str = ""


def side_by_side(problem: Problem) -> SideBySide:
    try:
        program = trace(problem.f)(*problem.args)
    except Exception as reason:  # such as effects between Programs
        return SideBySide(note=f"there is no one Program of the function: {reason}")
    try:
        derivative, note = program.vjp().optimize(), ""
    except Exception as reason:
        derivative, note = None, f"there is no VJP: {reason}"
    groups: dict[str, Group] = {}
    for column, shown in (("program", program), ("derivative", derivative)):
        for eq in shown.equations[:_MOST] if shown else ():
            getattr(_group(groups, eq.source), column).append(format_equation(eq))
    longest = max(len(p.equations) for p in (program, derivative) if p)
    if longest > _MOST:
        note = f"the first {_MOST} equations of {longest}"
    return SideBySide(tuple(groups.values()), note)


def _group(groups: dict[str, Group], source: str) -> Group:
    if source not in groups:
        place = place_of(source)
        groups[source] = Group(source, place.code.strip() if place else "")
    return groups[source]
