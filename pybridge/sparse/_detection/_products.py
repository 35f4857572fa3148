"""Dependence of products: elements with factors that are known to be zero depend on nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...ir.program import Equation
from ._abstract import Abstract, Matrix, applied, check_entries, grouped, incidence, rows_of, shape_of, union
from ._positions import combined, taps

Matrices = list[Matrix | None]


def product(eq: Equation, operands: Sequence[Abstract]) -> Matrices:
    x, y = operands
    return [union([_scaled(x, y, eq), _scaled(y, x, eq)])]


def _scaled(x: Abstract, factor: Abstract, eq: Equation) -> Matrix | None:
    if x.matrix is None or factor.value is None:
        return x.matrix
    nonzero = np.broadcast_to(factor.value != 0, shape_of(eq.outputs[0])).reshape(-1)
    return x.matrix if nonzero.all() else rows_of(x.matrix, np.where(nonzero, np.arange(nonzero.size), -1))


def dot_general(eq: Equation, operands: Sequence[Abstract]) -> Matrices:
    left = _Factor.of(operands[0], eq.attrs["lhs_batch"], eq.attrs["lhs_contract"])
    right = _Factor.of(operands[1], eq.attrs["rhs_batch"], eq.attrs["rhs_contract"])
    of_left = left.contribution(right)
    of_right = right.contribution(left)
    if of_right is not None:  # its rows are (batch, right, left)
        b, i, j = left.places.shape[0], left.places.shape[1], right.places.shape[1]
        of_right = rows_of(of_right, np.arange(b * i * j).reshape(b, j, i).swapaxes(1, 2))
    return [union([of_left, of_right])]


class _Factor:
    """One operand of a matrix product. places: (batch, free, contracted), of its elements."""

    def __init__(self, operand: Abstract, places: np.ndarray):
        self.operand, self.places = operand, places

    @classmethod
    def of(cls, x: Abstract, batch: Sequence[int], contract: Sequence[int]) -> _Factor:
        free = [d for d in range(len(x.shape)) if d not in (*batch, *contract)]
        sizes = [math.prod(x.shape[d] for d in axes) for axes in (batch, free, contract)]
        places = np.arange(x.size).reshape(x.shape).transpose(*batch, *free, *contract).reshape(sizes)
        return cls(x, places)

    def contribution(self, other: _Factor) -> Matrix | None:
        """The dependence by way of this operand, with rows (batch, free of this, free of the other)."""
        matrix = self.operand.matrix
        if matrix is None:
            return None
        (batch, free, _), others = self.places.shape, other.places.shape[1]
        results = np.arange(batch * free * others).reshape(batch, free, others)
        if other.operand.value is None:
            groups = np.empty(self.operand.size, np.int64)
            sums = np.arange(batch * free).reshape(batch, free, 1)
            groups[self.places] = np.broadcast_to(sums, self.places.shape)
            return rows_of(grouped(matrix, groups, batch * free), np.repeat(sums.reshape(-1), others))
        nonzero = np.nonzero(other.operand.value.reshape(-1)[other.places])
        b, j, k = (places[:, None] for places in nonzero)
        check_entries(b.size * free)
        i = np.arange(free)[None, :]
        links = incidence(results[b, i, j], self.places[b, i, k], (results.size, self.operand.size))
        return applied(links, matrix)


def convolution(eq: Equation, operands: Sequence[Abstract]) -> Matrices | None:
    """None for what this does not follow, batch groups."""
    x, w = operands
    if eq.attrs["batch_groups"] != 1:
        return None
    of_x, of_w, of_y = (_standard(a, eq.attrs[name]) for a, name in _convolved(eq, operands))
    count, features = of_y.shape[:2]
    inputs, per_group = of_x.shape[1], of_w.shape[1]
    names = ("strides", "low", "lhs_dilation", "rhs_dilation")
    axes = [
        taps(n, m, k, *(eq.attrs[name][d] for name in names))
        for d, (n, m, k) in enumerate(zip(of_x.shape[2:], of_y.shape[2:], of_w.shape[2:], strict=True))
    ]
    places = combined(axes, of_x.shape[2:])
    results, window = math.prod(of_y.shape[2:]), math.prod(of_w.shape[2:])
    places = places.reshape(results, window)
    check_entries(count * features * per_group * results * window)
    b, f, c, s, t = np.ogrid[:count, :features, :per_group, :results, :window]
    group = f // (features // (inputs // per_group))
    at = places[s, t]
    flat_x, flat_w, flat_y = (a.reshape(*a.shape[:2], -1) for a in (of_x, of_w, of_y))
    rows, tap = np.broadcast_arrays(flat_y[b, f, s], flat_w[f, c, t])
    covered = np.broadcast_to(at >= 0, rows.shape)
    rows, from_w = rows[covered], tap[covered]
    from_x = np.broadcast_to(flat_x[b, group * per_group + c, np.maximum(at, 0)], covered.shape)[covered]
    contributions: Matrices = []
    for operand, source, factor, other in ((x, from_x, w, from_w), (w, from_w, x, from_x)):
        if operand.matrix is None:
            continue
        if factor.value is not None:
            source = np.where(factor.value.reshape(-1)[other] != 0, source, -1)
        links = incidence(rows, source, (of_y.size, operand.size))
        contributions.append(applied(links, operand.matrix))
    return [union(contributions)]


def _convolved(eq: Equation, operands: Sequence[Abstract]) -> list[tuple[tuple[int, ...], str]]:
    shapes = (*(x.shape for x in operands), shape_of(eq.outputs[0]))
    return list(zip(shapes, ("lhs_spec", "rhs_spec", "out_spec"), strict=True))


def _standard(shape: Sequence[int], spec: Sequence[int]) -> np.ndarray:
    """The flat places of the elements, with batch or output features first and then the other features."""
    return np.arange(math.prod(shape)).reshape(shape).transpose(spec)
