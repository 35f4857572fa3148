"""Which values are narrowed: as much work as the allowed error lets, found by thresholds and single moves.

To narrow one value between two that stay gains nothing and costs conversions, so the search begins with all
values whose error is below a threshold. From the best threshold it goes on with single values.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ._graph import Graph

_THRESHOLDS = 40
_ROUNDS = 6


def choice(graph: Graph, part: float) -> np.ndarray:
    """By node, whether it is float32; the error that they add is at most `part` of what is allowed."""
    budget = np.full(graph.own.shape[1], part) - np.minimum(graph.bounds, part)
    candidates = [c for c in _by_threshold(graph) if _fits(graph.error(c), budget)]
    best = max(candidates, key=graph.saved, default=np.zeros(len(graph.gain), bool))
    return _improved(graph, best, budget)


def _fits(error: np.ndarray, budget: np.ndarray) -> bool:
    return bool(np.all(error <= budget))


def _by_threshold(graph: Graph) -> Iterator[np.ndarray]:
    """Each value alone, by its error for what it saves; what only passes on has the errors of its borders."""
    free = np.flatnonzero(graph.free)
    if not free.size:
        return
    passed = np.zeros_like(graph.own)
    np.add.at(passed, graph.targets, graph.weights)
    alone = np.where(graph.gain[:, None] > 0, graph.own, graph.own + passed).max(axis=1)
    least = graph.gain[graph.gain > 0].min(initial=np.inf)
    ratio = alone / np.maximum(graph.gain, least if np.isfinite(least) else 1.0)
    order = free[np.argsort(ratio[free], kind="stable")]
    for count in np.unique(np.linspace(0, order.size, _THRESHOLDS).astype(int)):
        chosen = np.zeros(len(graph.gain), bool)
        chosen[order[:count]] = True
        yield chosen


def _improved(graph: Graph, chosen: np.ndarray, budget: np.ndarray) -> np.ndarray:
    """By moves of single nodes that save more, as long as there are any."""
    moves = _Moves(graph, chosen.copy(), budget)
    order = np.flatnonzero(graph.free).tolist()
    for _ in range(_ROUNDS):
        if not sum(map(moves.attempt, order)):
            break
    return moves.chosen


class _Moves:
    """A choice, its error and, by node, the edges that a move of it changes."""

    def __init__(self, graph: Graph, chosen: np.ndarray, budget: np.ndarray):
        self.graph, self.chosen, self.budget = graph, chosen, budget
        self.error = graph.error(chosen)
        self._edges_in = _by_node(graph.targets, len(graph.gain))
        self._edges_out = _by_node(graph.sources, len(graph.gain))

    def attempt(self, node: int) -> bool:
        """Whether the node was moved. A tie goes to float32."""
        graph, narrow = self.graph, bool(self.chosen[node])
        into, out = self._edges_in[node], self._edges_out[node]
        crossing_in = ~self.chosen[graph.sources[into]]
        saved = graph.gain[node] - _change(graph.casts[into], ~crossing_in)
        saved -= _change(graph.casts[out], self.chosen[graph.targets[out]])
        if (narrow and saved >= 0) or (not narrow and saved < 0):
            return False
        added = graph.own[node] + graph.weights[into[crossing_in]].sum(axis=0)
        added = added - graph.weights[out[self.chosen[graph.targets[out]]]].sum(axis=0)
        after = self.error - added if narrow else self.error + added
        if not np.all(np.isfinite(after)) or not _fits(after, self.budget):
            return False
        self.chosen[node] = not narrow
        self.error = after
        return True


def _change(casts: np.ndarray, agree: np.ndarray) -> float:
    """The casts that a node in float32 needs at edges, less those that it needs in 64 bits."""
    return float(casts.sum() - 2 * casts[agree].sum())


def _by_node(ends: np.ndarray, count: int) -> list[np.ndarray]:
    order = np.argsort(ends, kind="stable")
    return np.split(order, np.searchsorted(ends[order], np.arange(1, count)))
