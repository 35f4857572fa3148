"""The user's lines, which equations name as `model.py:12 (step)`."""

from __future__ import annotations

import linecache
import re
from collections.abc import Mapping
from dataclasses import dataclass

_AROUND = 3  # lines that are shown before and after those that are marked


@dataclass(frozen=True)
class Place:
    file: str
    line: int

    @property
    def code(self) -> str:
        """The line's text, if the file can be read."""
        return linecache.getline(self.file, self.line).rstrip()


@dataclass(frozen=True)
class Mark:
    """share: of the error that is blamed, from 0 to 1. broken: what went wrong there, if anything did."""

    share: float = 0.0
    broken: str = ""


@dataclass(frozen=True)
class Line:
    number: int
    code: str
    mark: Mark | None


@dataclass(frozen=True)
class Passage:
    """Lines of a file that follow one another."""

    file: str
    lines: tuple[Line, ...]


def place_of(source: str) -> Place | None:
    """None where an equation is of no line."""
    found = re.match(r"(.*):(\d+)(?: \(.*\))?$", source)
    return Place(found[1], int(found[2])) if found else None


def passages(marks: Mapping[Place, Mark]) -> list[Passage]:
    """The marked lines and those around them, of files that can be read."""
    found = []
    for file in dict.fromkeys(place.file for place in marks):
        count = len(linecache.getlines(file))
        marked = {place.line: mark for place, mark in marks.items() if place.file == file}
        near = {n for line in marked for n in range(line - _AROUND, line + _AROUND + 1) if 1 <= n <= count}
        for run in _runs(sorted(near)):
            lines = (Line(n, Place(file, n).code, marked.get(n)) for n in run)
            found.append(Passage(file, tuple(lines)))
    return found


def _runs(numbers: list[int]) -> list[list[int]]:
    """The numbers, in runs without gaps."""
    runs: list[list[int]] = []
    for n in numbers:
        if runs and runs[-1][-1] == n - 1:
            runs[-1].append(n)
        else:
            runs.append([n])
    return runs
