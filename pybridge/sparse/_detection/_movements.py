"""Dependence of results whose elements are, or are sums of, elements of the operands."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...ir.program import Equation
from ._abstract import (
    Abstract,
    Matrix,
    applied,
    check_entries,
    grouped,
    incidence,
    rows_of,
    shape_of,
    stacked,
    union,
)
from ._positions import Windows, combined, gathered, scattered, taps, windows
from ._values import MOVEMENTS

Matrices = list[Matrix | None]

_IDENTITIES = frozenset({"reshape", "squeeze", "copy", "saveable"})


def moved(eq: Equation, operands: Sequence[Abstract]) -> Matrices:
    """Follows each element of the results to the element of an operand that it is."""
    if eq.op in _IDENTITIES:
        return [operands[0].matrix]
    if eq.op == "optimization_barrier":
        return [x.matrix for x in operands]
    places, total = [], 0
    for x in operands:
        dependent = x.matrix is not None
        places.append(
            np.arange(total, total + x.size).reshape(x.shape) if dependent else np.full(x.shape, -1)
        )
        total += x.size if dependent else 0
    source = _joined(operands)
    found = MOVEMENTS[eq.op](eq, *places)
    return [rows_of(source, place) for place in (found if isinstance(found, list) else [found])]


def _joined(operands: Sequence[Abstract]) -> Matrix | None:
    parts = [x for x in operands if x.matrix is not None]
    return parts[0].matrix if len(parts) == 1 else stacked([x.matrix for x in parts], [x.size for x in parts])


def selected(eq: Equation, operands: Sequence[Abstract]) -> Matrices:
    """Each element from the case that is selected; from all where that is unknown."""
    which, *cases = operands
    if which.value is None:
        return [union([x.matrix for x in cases])]
    size = math.prod(shape_of(eq.outputs[0]))
    places = np.clip(np.broadcast_to(which.value, shape_of(eq.outputs[0])).reshape(-1), 0, len(cases) - 1)
    return [
        union(
            [
                rows_of(x.matrix, np.where(places == k, np.arange(size), -1))
                for k, x in enumerate(cases)
                if x.matrix is not None
            ]
        )
    ]


# Indices


def gather(eq: Equation, operands: Sequence[Abstract]) -> Matrices:
    x, indices = operands
    if x.matrix is None:
        return [None]
    return [_read(x, gathered(x.shape, indices.value, eq.attrs, indices.shape[:-1]))]


def dynamic_slice(eq: Equation, operands: Sequence[Abstract]) -> Matrices:
    x, *starts = operands
    if x.matrix is None:
        return [None]
    return [_read(x, _dynamic_windows(x.shape, starts, eq.attrs["sizes"]))]


def _dynamic_windows(shape: Sequence[int], starts: Sequence[Abstract], sizes: Sequence[int]) -> Windows:
    # An axis that the slice covers has its only start known.
    known = [np.zeros(()) if n == m else s.value for s, n, m in zip(starts, sizes, shape, strict=True)]
    return windows(shape, known, (), sizes, range(len(shape)), clip=True)


def _read(x: Abstract, window: Windows) -> Matrix | None:
    matrix = x.matrix if window.groups is None else grouped(x.matrix, window.groups, x.size)
    return rows_of(matrix, window.positions)


def scatter(eq: Equation, operands: Sequence[Abstract]) -> Matrices:
    x, indices, updates = operands
    window = scattered(x.shape, indices.value, eq.attrs, indices.shape[:-1], updates.shape)
    return [_written(x, updates, window, replaces=eq.op == "scatter")]


def dynamic_update_slice(eq: Equation, operands: Sequence[Abstract]) -> Matrices:
    x, update, *starts = operands
    window = _dynamic_windows(x.shape, starts, update.shape)
    return [_written(x, update, window, replaces=True)]


def _written(x: Abstract, updates: Abstract, window: Windows, replaces: bool) -> Matrix | None:
    """The operand with updates at some positions: in the place of its elements, or combined with them."""
    new = grouped(updates.matrix, window.positions, x.size)
    if window.groups is not None:
        return union([x.matrix, rows_of(new, window.groups)])
    kept = x.matrix
    if replaces and kept is not None:
        places = np.arange(x.size)
        places[window.positions[window.positions >= 0]] = -1
        kept = rows_of(kept, places)
    return union([kept, new])


# Reductions


def _without_axes(shape: Sequence[int], axes: Sequence[int]) -> tuple[np.ndarray, int]:
    """For each element its place in the result of a reduction, and the number of results."""
    kept = [1 if d in axes else n for d, n in enumerate(shape)]
    return np.broadcast_to(np.arange(math.prod(kept)).reshape(kept), shape).reshape(-1), math.prod(kept)


def reduced(eq: Equation, operands: Sequence[Abstract]) -> Matrices:
    return [grouped(operands[0].matrix, *_without_axes(operands[0].shape, eq.attrs["axes"]))]


def over_axes(operands: Sequence[Abstract], axes: Sequence[int]) -> Matrices:
    """Results of the operands' shapes whose elements depend on all along some axes."""
    made: Matrices = []
    for x in operands:
        groups, count = _without_axes(x.shape, [d % len(x.shape) for d in axes])
        made.append(rows_of(grouped(x.matrix, groups, count), groups))
    return made


def sort(eq: Equation, operands: Sequence[Abstract]) -> Matrices:
    return over_axes(operands, [eq.attrs["dim"]])


def top_k(eq: Equation, operands: Sequence[Abstract]) -> Matrices:
    x, axis = operands[0], eq.attrs["axis"] % len(operands[0].shape)
    groups, count = _without_axes(x.shape, [axis])
    places = np.take(groups.reshape(x.shape), range(eq.attrs["k"]), axis)
    return [rows_of(grouped(x.matrix, groups, count), places), None]


def cumulative(eq: Equation, operands: Sequence[Abstract]) -> Matrices:
    x, axis = operands[0], eq.attrs["axis"]
    if x.matrix is None:
        return [None]
    n = x.shape[axis]
    check_entries(x.size * (n + 1) // 2)
    before, after = np.nonzero(np.tril(np.ones((n, n), bool)))
    if eq.attrs["reverse"]:
        before, after = after, before
    lines = np.moveaxis(np.arange(x.size).reshape(x.shape), axis, 0).reshape(n, -1)
    return [applied(incidence(lines[before], lines[after], (x.size, x.size)), x.matrix)]


def reduce_window(eq: Equation, operands: Sequence[Abstract]) -> Matrices:
    x, shape = operands[0], shape_of(eq.outputs[0])
    names = ("window", "strides", "low", "base_dilation", "window_dilation")
    axes = [
        taps(n, m, *(eq.attrs[name][d] for name in names))
        for d, (n, m) in enumerate(zip(x.shape, shape, strict=True))
    ]
    size = math.prod(shape)
    columns = combined(axes, x.shape).reshape(size, -1)
    rows = np.repeat(np.arange(size), columns.shape[1])
    return [applied(incidence(rows, columns, (size, x.size)), x.matrix)]
