"""What is known of a value: on which elements of the argument its elements depend, and what it is.

A dependence is a boolean sparse matrix, with a row for each element of the value in row-major order and a
column for each element of the argument. Matrices are supersets of the true dependence: what follows is the
index-set propagation of Griewank and Walther, Evaluating Derivatives (2008), section 7.1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import scipy.sparse as sp

from ...errors import DensePattern
from ...ir.types import Var

Matrix = Any
"""A boolean `scipy.sparse.csr_array`."""

MAX_ENTRIES = 30_000_000
"""Of one dependence matrix: about 150 MB."""


def shape_of(var: Var) -> tuple[int, ...]:
    """The shape of a variable of a Program without symbolic dimensions."""
    return cast("tuple[int, ...]", var.type.shape)


@dataclass(frozen=True)
class Abstract:
    """shape: of the value. matrix: its dependence, None where it depends on nothing.

    value: where it is known.
    """

    shape: tuple[int, ...]
    matrix: Matrix | None = None
    value: np.ndarray | None = None

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def independent(self) -> Abstract:
        return replace(self, matrix=None)


def check_entries(count: int) -> None:
    """Raises DensePattern where a matrix would have more entries than any is allowed to."""
    if count > MAX_ENTRIES:
        raise DensePattern(f"its dependence on the argument would have {count:.2g} entries")


def bounded(matrix: Matrix) -> Matrix | None:
    """The matrix, None if it is empty."""
    check_entries(matrix.nnz)
    return matrix if matrix.nnz else None


def union(matrices: Sequence[Matrix | None]) -> Matrix | None:
    """The entries that any of the matrices has."""
    present = list({id(m): m for m in matrices if m is not None}.values())
    if not present:
        return None
    result = present[0]
    for other in present[1:]:
        result = result + other
    return bounded(result)


def rows_of(matrix: Matrix | None, places: np.ndarray) -> Matrix | None:
    """The matrix of these rows, in this order; an empty row at -1."""
    if matrix is None:
        return None
    flat = places.reshape(-1)
    lengths = np.diff(matrix.indptr, append=matrix.indptr[-1])[flat]  # the last, that of -1, is 0
    check_entries(int(lengths.sum()))
    indptr = np.zeros(flat.size + 1, np.int64)
    np.cumsum(lengths, out=indptr[1:])
    starts = matrix.indptr[flat]
    entries = np.arange(indptr[-1]) + np.repeat(starts - indptr[:-1], lengths)
    indices = matrix.indices[entries]
    if not indices.size:
        return None
    made = sp.csr_array((np.ones(indices.size, bool), indices, indptr), shape=(flat.size, matrix.shape[1]))
    made.has_sorted_indices = matrix.has_sorted_indices
    return made


def stacked(parts: Sequence[Matrix | None], sizes: Sequence[int]) -> Matrix | None:
    """The matrices of so many rows below each other."""
    columns = next((m.shape[1] for m in parts if m is not None), None)
    if columns is None:
        return None
    full = [
        sp.csr_array((size, columns), dtype=bool) if m is None else m
        for m, size in zip(parts, sizes, strict=True)
    ]
    return bounded(sp.vstack(full, format="csr"))


def incidence(rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]) -> Matrix:
    """The matrix with these entries; those with -1 for a column are left out."""
    rows, columns = rows.reshape(-1), columns.reshape(-1)
    check_entries(rows.size)
    present = columns >= 0
    rows, columns = rows[present], columns[present]
    return sp.coo_array((np.ones(rows.size, bool), (rows, columns)), shape=shape).tocsr()


def applied(links: Matrix, matrix: Matrix | None) -> Matrix | None:
    """The dependence of results that are linked to the rows of `matrix`."""
    if matrix is None:
        return None
    degrees = np.diff(matrix.indptr)
    check_entries(int(min(degrees[links.indices].sum(), links.shape[0] * matrix.shape[1])))
    return bounded(links @ matrix)


def grouped(matrix: Matrix | None, groups: np.ndarray, count: int) -> Matrix | None:
    """For each of `count` groups the union of the rows that are in it; -1 is in none."""
    if matrix is None:
        return None
    members = np.arange(groups.size)
    return applied(incidence(members, groups.reshape(-1), (groups.size, count)).T.tocsr(), matrix)
