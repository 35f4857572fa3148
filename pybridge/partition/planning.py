"""Which equation is computed in which segment.

Time is counted in segments. At each time JAX first binds the foreign equations whose operands are there; then
the segments of that time run. There are several where results vary over different mesh axes, since those of
one Program vary alike.

An equation has a time at which it can be computed first, and one by which it must have been. Those without
that choice say which segments there are. The others go where their readers are, or into a segment that is
there.
"""

from __future__ import annotations

import enum
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..frontend.adapter import jaxprs


class Loop(enum.Enum):
    """An axis as those of a mesh: what a scan that JAX binds computes from its constants alone varies over no
    trips. In a Program of its own, it is kept once for the derivative, not in each trip."""

    TRIPS = "trips"


@dataclass(frozen=True, eq=False)
class Node:
    """An equation: the variables that it reads, those of its results that are used, and the axes over which
    these vary. JAX binds the foreign ones, and those that have an effect in their order."""

    eqn: Any
    reads: tuple[jaxprs.Var, ...]
    writes: tuple[jaxprs.Var, ...]
    axes: frozenset
    foreign: bool
    effect: bool


@dataclass(frozen=True)
class Place:
    """A segment: its time, and over which axes its results vary."""

    time: int
    axes: frozenset

    def order(self) -> tuple:
        """Places in this order can run one after the other: less varying values become more varying ones."""
        return self.time, len(self.axes), sorted(map(str, self.axes))


@dataclass(frozen=True, eq=False)
class Group:
    """The nodes of a segment, and its axes; or one that is foreign."""

    nodes: tuple[Node, ...]
    axes: frozenset | None


def plan(nodes: Sequence[Node], outputs: Sequence[Any]) -> list[Group]:
    """The nodes in few groups, in an order in which they can run."""
    graph = _Graph(nodes, outputs)
    segments: dict[Place, list[Node]] = {}
    for i, place in sorted(graph.places().items()):
        segments.setdefault(place, []).append(nodes[i])
    groups = []
    for time in range(1 + max(graph.first, default=-1)):
        bound = (n for n, first in zip(nodes, graph.first, strict=True) if n.foreign and first == time)
        groups += [Group((node,), None) for node in bound]
        there = sorted((place for place in segments if place.time == time), key=Place.order)
        groups += [Group(tuple(segments[place]), place.axes) for place in there]
    return groups


class _Graph:
    """Who reads whom. `first`, `last`: each node's earliest and latest time; foreign ones have no choice."""

    def __init__(self, nodes: Sequence[Node], outputs: Sequence[Any]):
        makers = {var: i for i, node in enumerate(nodes) for var in node.writes}
        self.nodes = nodes
        self.sources = [sorted({makers[v] for v in node.reads if v in makers}) for node in nodes]
        effects = [i for i, node in enumerate(nodes) if node.foreign and node.effect]
        for before, after in itertools.pairwise(effects):
            self.sources[after].append(before)
        self.readers: list[list[int]] = [[] for _ in nodes]
        for i, sources in enumerate(self.sources):
            for j in sources:
                self.readers[j].append(i)
        self.kept = {makers[v] for v in outputs if jaxprs.is_var(v) and v in makers}
        self.axes = self._axes()
        self.first = self._first()
        self.last = self._last()

    def _axes(self) -> list[frozenset]:
        """Over which axes results are to vary: what only more varying equations read varies as they do."""
        axes = [node.axes for node in self.nodes]
        for i in self._ours():
            readers = self.readers[i]
            if i in self.kept or any(self.nodes[j].foreign for j in readers):
                continue
            among = {axes[j] for j in readers}
            if len(among) == 1:
                axes[i] = among.pop()
        return axes

    def _ours(self) -> list[int]:
        """The nodes that are not foreign, readers first."""
        return [i for i in reversed(range(len(self.nodes))) if not self.nodes[i].foreign]

    def _first(self) -> list[int]:
        """A foreign equation waits until the segments that make its operands have run."""
        first: list[int] = []
        for node, sources in zip(self.nodes, self.sources, strict=True):
            times = (first[j] + (node.foreign and not self.nodes[j].foreign) for j in sources)
            first.append(max(times, default=0))
        return first

    def _last(self) -> list[int]:
        end = max((self.first[i] for i in self._ours()), default=0)
        last = list(self.first)
        for i in self._ours():
            last[i] = self._deadline(i, last, end)
        return last

    def _deadline(self, i: int, times: Sequence[int], end: int) -> int:
        """By when a node must be computed, given the times of its readers."""
        readers = self.readers[i]
        return min((times[j] - 1 if self.nodes[j].foreign else times[j] for j in readers), default=end)

    def places(self) -> dict[int, Place]:
        """For each node that is not foreign its segment."""
        there = {Place(self.first[i], self.axes[i]) for i in self._ours() if self.first[i] == self.last[i]}
        times = list(self.first)
        for i in self._ours():
            until = self._deadline(i, times, self.last[i])
            possible = [p.time for p in there if p.axes == self.axes[i] and self.first[i] <= p.time <= until]
            choose = min if _shrinks(self.nodes[i]) else max
            times[i] = choose(possible, default=self.first[i] if i in self.kept else until)
            there.add(Place(times[i], self.axes[i]))
        return {i: Place(times[i], self.axes[i]) for i in self._ours()}


def _shrinks(node: Node) -> bool:
    """Whether less leaves the equation than enters it: then its result had better cross to later segments."""
    return sum(map(_size, node.writes)) < max(map(_size, node.reads), default=0)


def _size(var) -> int:
    return math.prod(d if isinstance(d, int) else 1 for d in getattr(var.aval, "shape", ()))
