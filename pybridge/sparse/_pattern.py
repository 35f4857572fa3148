"""Which entries of a derivative may be other than zero."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from jax.experimental.sparse import BCOO

from ..errors import ArgumentError


@dataclass(frozen=True, eq=False, repr=False)
class SparsityPattern:
    """The entries (rows[k], columns[k]) of a matrix of this shape, by rows and in a row by columns.

    rows, columns: int32 arrays of shape (entries,), without duplicates.
    """

    shape: tuple[int, int]
    rows: np.ndarray
    columns: np.ndarray

    @classmethod
    def of(cls, given: Any) -> SparsityPattern:
        """That of a scipy sparse matrix, a BCOO, or an array of two dimensions.

        Entries that are stored count, whatever their values; of a dense array those other than zero (NaN is
        other). Raises ArgumentError for anything else.
        """
        if isinstance(given, cls):
            return given
        if isinstance(given, BCOO):
            if given.n_batch or given.n_dense or given.ndim != 2:
                raise ArgumentError(
                    f"a pattern is a BCOO of two sparse dimensions without batches, got {given!r}"
                )
            at = np.asarray(given.indices)
            at = at[(at < np.asarray(given.shape)).all(1)]  # BCOO pads with indices out of bounds
            return cls._of_entries(given.shape, at[:, 0], at[:, 1])
        if sp.issparse(given):
            if given.ndim != 2:
                raise ArgumentError(f"a pattern has two dimensions, got the shape {given.shape}")
            coo = given.tocoo()
            return cls._of_entries(coo.shape, coo.row, coo.col)
        try:
            dense = np.asarray(given)
        except Exception as e:
            raise ArgumentError(f"a pattern cannot be a {type(given).__name__}: {e}") from None
        if dense.ndim != 2 or dense.dtype.kind not in "biufc":
            raise ArgumentError(
                "a pattern is a scipy sparse matrix, a BCOO or an array of two dimensions, got "
                f"{type(given).__name__} of shape {dense.shape} and dtype {dense.dtype}"
            )
        return cls._of_entries(dense.shape, *np.nonzero(dense))

    @classmethod
    def _of_entries(cls, shape: tuple[int, ...], rows: np.ndarray, columns: np.ndarray) -> SparsityPattern:
        matrix = sp.coo_array((np.ones(len(rows), bool), (rows, columns)), shape=shape).tocsr()
        return cls.of_csr(matrix)

    @classmethod
    def of_csr(cls, matrix: Any) -> SparsityPattern:
        """That of a scipy CSR matrix."""
        matrix.sum_duplicates()
        rows = np.repeat(np.arange(matrix.shape[0], dtype=np.int32), np.diff(matrix.indptr))
        return cls(tuple(matrix.shape), rows, matrix.indices.astype(np.int32))

    def __repr__(self) -> str:
        return f"<SparsityPattern {self.shape[0]} x {self.shape[1]}, {self.entries} entries>"

    @property
    def entries(self) -> int:
        """How many there are."""
        return len(self.rows)

    @cached_property
    def csr(self) -> Any:
        """The pattern as a boolean `scipy.sparse.csr_array`."""
        return self.with_data(np.ones(self.entries, bool))

    def with_data(self, data: np.ndarray) -> Any:
        """The `csr_array` with `data[k]` at the entry k."""
        indptr = np.zeros(self.shape[0] + 1, np.int32)
        np.cumsum(np.bincount(self.rows, minlength=self.shape[0]), out=indptr[1:])
        return sp.csr_array((data, self.columns, indptr), shape=self.shape)

    @cached_property
    def keys(self) -> np.ndarray:
        """A number for each entry, ascending."""
        return self.rows.astype(np.int64) * self.shape[1] + self.columns

    def places_of(self, other: SparsityPattern) -> np.ndarray:
        """Where the entries of another pattern, a subset, are among these."""
        return np.searchsorted(self.keys, other.keys)

    @cached_property
    def by_columns(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The order of the entries by columns, their rows in it, and where columns begin."""
        order = np.argsort(self.columns, kind="stable")
        indptr = np.zeros(self.shape[1] + 1, np.int32)
        np.cumsum(np.bincount(self.columns, minlength=self.shape[1]), out=indptr[1:])
        return order, self.rows[order], indptr

    @property
    def transposed(self) -> SparsityPattern:
        return SparsityPattern.of_csr(self.csr.T.tocsr())

    @property
    def symmetric(self) -> SparsityPattern:
        """With the mirror image of each entry."""
        return SparsityPattern.of_csr((self.csr + self.csr.T).tocsr())
