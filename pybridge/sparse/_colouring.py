"""Greedy colourings: columns of one colour are computed by one product with the derivative.

Curtis, Powell and Reid, On the estimation of sparse Jacobian matrices (1974), group columns that have no row
in common; Coleman and More, Estimation of sparse Jacobian matrices and graph coloring problems (1983), see in
it the colouring of a graph, and name the orders below; Gebremedhin, Manne and Pothen, What color is your
Jacobian? (2005), have the star colouring of a symmetric matrix (section 6) and how its entries are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import DensePattern
from ._pattern import SparsityPattern

MAX_NEIGHBOURS = 40_000_000
"""Of all columns together: pairs that share a row. Greedy colouring looks at each once."""

_MAX_PATHS = 20_000_000
"""Of three edges, which star colouring looks at."""


@dataclass(frozen=True)
class Colouring:
    """colours: of each column, from 0 on. count: how many there are.

    source: for each entry of the pattern, colour * length + place, where in the compressed products (count,
        length) its value is.
    """

    colours: np.ndarray
    count: int
    source: np.ndarray


def coloured_columns(pattern: SparsityPattern) -> Colouring:
    """Columns of one colour share no row. Raises DensePattern where they are too many to be coloured."""
    if not pattern.entries:
        return Colouring(np.full(pattern.shape[1], -1, np.int32), 0, np.zeros(0, np.int64))
    matrix = pattern.csr
    lengths = np.diff(matrix.indptr).astype(np.int64)
    if (lengths**2).sum() > MAX_NEIGHBOURS:
        longest = int(lengths.argmax())
        raise DensePattern(
            f"the pattern {pattern!r} is too dense to be coloured: row {longest} has {lengths[longest]} "
            "entries. Take dense rows or columns out of the function, and differentiate them by themselves "
            "(jax.grad, jax.jvp)"
        )
    neighbours = (matrix.T.astype(np.int32) @ matrix.astype(np.int32)).tocsr()
    colours = _best(neighbours, int(max(lengths, default=0)))
    count = int(colours.max(initial=-1)) + 1
    return Colouring(colours, count, _direct(pattern, colours))


def fewest_colours(pattern: SparsityPattern) -> int:
    """No colouring of columns has fewer colours than a row has entries."""
    return max(np.bincount(pattern.rows).tolist(), default=0)


def _direct(pattern: SparsityPattern, colours: np.ndarray) -> np.ndarray:
    return colours[pattern.columns].astype(np.int64) * pattern.shape[0] + pattern.rows


def _best(graph, fewest: int) -> np.ndarray:
    """The fewest colours of the natural order, of the largest degree first and of incidence degrees."""
    indptr, indices = graph.indptr.tolist(), graph.indices.tolist()
    degrees = np.diff(graph.indptr)
    best = _greedy(indptr, indices, range(len(degrees)))
    if best.max(initial=-1) + 1 > fewest:
        other = _greedy(indptr, indices, np.argsort(-degrees, kind="stable").tolist())
        best = min(best, other, key=lambda colours: colours.max(initial=-1))
    if best.max(initial=-1) + 1 > fewest:
        other = _greedy(indptr, indices, _by_incidence(indptr, indices, int(degrees.max(initial=0))))
        best = min(best, other, key=lambda colours: colours.max(initial=-1))
    return best


def _greedy(indptr: Sequence[int], indices: Sequence[int], order: Sequence[int]) -> np.ndarray:
    """The first colour that no neighbour has, for one column after another."""
    colours = [-1] * (len(indptr) - 1)
    for v in order:
        taken = {colours[w] for w in indices[indptr[v] : indptr[v + 1]]}
        colour = 0
        while colour in taken:
            colour += 1
        colours[v] = colour
    return np.asarray(colours, np.int32)


def _by_incidence(indptr: Sequence[int], indices: Sequence[int], most: int) -> list[int]:
    """Next is always a column with the most neighbours that are in the order already."""
    count = len(indptr) - 1
    incidence = [0] * count
    buckets: list[list[int]] = [[] for _ in range(most + 2)]
    buckets[0] = list(range(count))[::-1]
    order: list[int] = []
    done, level = [False] * count, 0
    while len(order) < count:
        while not buckets[level]:
            level -= 1
        v = buckets[level].pop()
        if done[v] or incidence[v] != level:
            continue
        done[v] = True
        order.append(v)
        for w in indices[indptr[v] : indptr[v + 1]]:
            if not done[w]:
                incidence[w] += 1
                buckets[incidence[w]].append(w)
                level = max(level, incidence[w])
    return order


def coloured_symmetric(pattern: SparsityPattern) -> Colouring:
    """A star colouring of a symmetric pattern, if it needs fewer colours than columns without common rows.

    In a star colouring neighbours have different colours and every path of four vertices has three. So, of
    the entries (i, j) and (j, i), one is alone among those of its row whose columns have the same colour.
    """
    columns = None
    try:
        columns = coloured_columns(pattern)
    except DensePattern:
        if _paths(pattern) > _MAX_PATHS:
            raise
    if columns is not None and (columns.count <= 2 or _paths(pattern) > _MAX_PATHS):
        return columns
    colours = _star(pattern)
    count = int(colours.max(initial=-1)) + 1
    if columns is not None and columns.count <= count:
        return columns
    return Colouring(colours, count, _readable(pattern, colours, count))


def _paths(pattern: SparsityPattern) -> int:
    degrees = np.bincount(pattern.rows, minlength=pattern.shape[0]).astype(np.int64)
    return int((degrees[pattern.rows] * degrees[pattern.columns]).sum())


def _star(pattern: SparsityPattern) -> np.ndarray:
    edges = pattern.rows != pattern.columns
    count = pattern.shape[0]
    ends = np.cumsum(np.bincount(pattern.rows[edges], minlength=count))[:-1]
    adjacent = [part.tolist() for part in np.split(pattern.columns[edges], ends)]
    colours = [-1] * count
    for v in sorted(range(count), key=lambda v: -len(adjacent[v])):
        taken = set()
        for w in adjacent[v]:
            of_w = colours[w]
            taken.add(of_w)
            for x in adjacent[w]:
                of_x = colours[x]
                if x == v or of_x < 0 or of_x in taken:
                    continue
                if of_w < 0 or any(y != w and colours[y] == of_w for y in adjacent[x]):
                    taken.add(of_x)
        colour = 0
        while colour in taken:
            colour += 1
        colours[v] = colour
    return np.asarray(colours, np.int32)


def _readable(pattern: SparsityPattern, colours: np.ndarray, count: int) -> np.ndarray:
    """For each entry where it is alone: in its own row, or in the row of its mirror image."""
    rows, columns = pattern.rows.astype(np.int64), pattern.columns.astype(np.int64)
    own = rows * count + colours[columns]
    _, first, repeats = np.unique(own, return_inverse=True, return_counts=True)
    alone = repeats[first] == 1
    row, column = np.where(alone, rows, columns), np.where(alone, columns, rows)
    return colours[column].astype(np.int64) * pattern.shape[0] + row
