"""One iteration of a loop as links from its inputs to its results, and what any number of them reach."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from ...ir.program import Program
from ._abstract import Abstract, Matrix, applied, rows_of, stacked
from ._state import Detection


@dataclass(frozen=True)
class Links:
    """results: for each result its dependence on the elements of all inputs, which start at `starts`."""

    results: list[Matrix | None]
    sizes_of_results: list[int]
    starts: np.ndarray

    @classmethod
    def of(cls, body: Program, inputs: Sequence[Abstract], detection: Detection) -> Links:
        sizes = [x.size for x in inputs]
        starts = np.cumsum([0, *sizes])
        columns = int(starts[-1])
        every = sp.eye_array(columns, dtype=bool, format="csr")
        active = [v.type.inexact for v in body.inputs]
        given = [
            Abstract(x.shape, rows_of(every, np.arange(a, b)) if inexact else None, x.value)
            for x, a, b, inexact in zip(inputs, starts, starts[1:], active, strict=False)
        ]
        inner = replace(detection, columns=columns)
        found = inner.follow(body, given)
        detection.steps, detection.reverse_only = inner.steps, inner.reverse_only
        return cls([y.matrix for y in found], [y.size for y in found], starts)

    def between(self, source: int, result: int) -> Matrix:
        """From the elements of one input to those of one result."""
        matrix = self.results[result]
        size = int(self.starts[source + 1] - self.starts[source])
        if matrix is None:
            return sp.csr_array((self.sizes_of_results[result], size), dtype=bool)
        return matrix[:, self.starts[source] : self.starts[source + 1]]

    def by_way_of(self, sources: range, matrices: Sequence[Matrix | None]) -> list[Matrix | None]:
        """The dependence of each result by way of some inputs, which have these dependences."""
        if not len(sources):
            return [None] * len(self.results)
        first, last = self.starts[sources.start], self.starts[sources.stop]
        together = stacked(matrices, list(np.diff(self.starts[sources.start : sources.stop + 1])))
        return [None if m is None else applied(m[:, first:last], together) for m in self.results]


def reachable(links: Links, carry: range, start: Sequence[Matrix | None]) -> list[Matrix | None]:
    """The dependence of what a loop carries, after any number of iterations.

    By squaring: what 2k iterations reach is what k and then k iterations do.
    """
    sizes = [int(n) for n in np.diff(links.starts[carry.start : carry.stop + 1])]
    together = stacked(start, sizes)
    first, last = links.starts[carry.start], links.starts[carry.stop]
    step = stacked(links.results[: len(carry)], sizes)
    if together is None or step is None:
        return list(start)
    path = step[:, first:last] + sp.eye_array(sum(sizes), dtype=bool, format="csr")
    while True:
        longer = _squared(path)
        if longer.nnz == path.nnz:
            break
        path = longer
    reached = applied(path, together)
    ends = np.cumsum([0, *sizes])
    return [rows_of(reached, np.arange(a, b)) for a, b in itertools.pairwise(ends)]


def _squared(path: Matrix) -> Matrix:
    """The square of a matrix with a diagonal."""
    squared = applied(path, path)
    return path if squared is None else squared
