"""How the user's function groups and names the values that are a Program's inputs and outputs.

A tree is of one kind throughout a structure: JAX's in a Program, one of `trees` in an archive.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Part:
    """Values under a name: `tree` groups them."""

    name: str
    tree: Any


@dataclass(frozen=True)
class Argument(Part):
    """keyword: it is passed by its name alone."""

    keyword: bool = False


Result = Part | tuple["Result", ...]
"""What a call gives: the values of a part, or a tuple of results."""


@dataclass(frozen=True)
class Structure:
    """arguments: in the order of the inputs, each with as many as its tree has leaves; names are unique."""

    arguments: tuple[Argument, ...]
    result: Result

    @property
    def results(self) -> tuple[Part, ...]:
        """The parts of the result, in the order of the outputs."""
        return _parts(self.result)

    def mapped(self, change: Callable[[Any], Any]) -> Structure:
        """The structure with each tree changed, as into one of the other kind."""

        def result(of: Result) -> Result:
            return tuple(map(result, of)) if isinstance(of, tuple) else Part(of.name, change(of.tree))

        arguments = tuple(Argument(a.name, change(a.tree), a.keyword) for a in self.arguments)
        return Structure(arguments, result(self.result))


def _parts(result: Result) -> tuple[Part, ...]:
    return (result,) if isinstance(result, Part) else tuple(part for r in result for part in _parts(r))


def unique(wish: str, taken: set[str]) -> str:
    """The wish, with a number behind it where that is taken; it is taken from then on."""
    name, count = wish, 2
    while name in taken:
        name, count = f"{wish}_{count}", count + 1
    taken.add(name)
    return name
