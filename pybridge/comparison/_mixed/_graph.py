"""The values of a Program as a graph: what has one precision together, and what a border between two costs.

A node is a set of values that have one precision: the results of an equation, the values of a loop's carry in
all trips, an operand in all the branches that take it. An edge says that values of one node go into another.
In float32 a node adds its equation's error to the error of a result, and each edge that comes from a node of
64 bits the error of rounding what it carries.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ...ir.program import Equation, Program
from ._wiring import Path


@dataclass(frozen=True)
class Site:
    """An equation whose results could be narrowed. place: the loops, branches and calls around it."""

    program: Program
    eq: Equation
    number: int
    place: tuple[str, ...]
    node: int


@dataclass(frozen=True, eq=False)
class Graph:
    """Errors are parts of what is allowed, for each element of a result that is looked at.

    place: by body and variable, its node. own: by node, the error that it makes in float32. gain: what it
    saves. wide: which have 64 bits. pinned: why one of them must keep them, if it must.
    sources, targets, weights, casts: of the edges, the last two being the error of rounding and the cost of
    converting. bounds: of the function as it is.
    """

    place: Mapping[tuple[Path, int], int]
    sites: Sequence[Site]
    own: np.ndarray
    gain: np.ndarray
    wide: np.ndarray
    pinned: Mapping[int, str]
    sources: np.ndarray
    targets: np.ndarray
    weights: np.ndarray
    casts: np.ndarray
    bounds: np.ndarray

    @property
    def free(self) -> np.ndarray:
        """Which nodes may be narrowed."""
        found = self.wide.copy()
        found[list(self.pinned)] = False
        return found

    def error(self, chosen: np.ndarray) -> np.ndarray:
        """What the chosen nodes in float32 add."""
        crossing = chosen[self.targets] & ~chosen[self.sources]
        return self.own[chosen].sum(axis=0) + self.weights[crossing].sum(axis=0)

    def saved(self, chosen: np.ndarray) -> float:
        border = chosen[self.targets] != chosen[self.sources]
        return float(self.gain[chosen].sum() - self.casts[border].sum())


class Flow:
    """Which values other values are computed from. node: of each value the node that it is in."""

    def __init__(
        self, node: np.ndarray, sources: np.ndarray, targets: np.ndarray, paths: Sequence[Path]
    ) -> None:
        self.node, self.sources, self.targets, self._paths = node, sources, targets, paths
        self._before: dict[int, list[int]] = {}
        for source, target in zip(sources.tolist(), targets.tolist(), strict=True):
            self._before.setdefault(target, []).append(source)

    def into(self, values: Iterable[int], among: set[int] | None = None) -> set[int]:
        """The nodes that these values are computed from, their own included; of those given alone."""
        found: set[int] = set()
        waiting = [int(self.node[v]) for v in values]
        while waiting:
            node = waiting.pop()
            if node not in found and (among is None or node in among):
                found.add(node)
                waiting += self._before.get(node, ())
        return found

    def within(self, value: int, path: Path, number: int) -> set[int]:
        """The same, inside of the bodies of the equation with that number in the body at `path`."""
        depth = len(path)
        inside = {
            int(self.node[v])
            for v, p in enumerate(self._paths)
            if len(p) > depth and p[:depth] == path and p[depth][0] == number
        }
        return self.into([value], inside)
