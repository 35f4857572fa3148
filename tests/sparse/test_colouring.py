"""Colourings: every entry of the pattern can be read from the compressed products, exactly."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import pybridge as pb
from pybridge.sparse._colouring import coloured_columns, coloured_symmetric
from pybridge.sparse._pattern import SparsityPattern
from pybridge.sparse._plan import chosen


@st.composite
def matrices(draw, square=False):
    m = draw(st.integers(1, 12))
    n = m if square else draw(st.integers(1, 12))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    return np.where(rng.random((m, n)) < draw(st.floats(0, 0.6)), rng.uniform(1, 2, (m, n)), 0.0)


def read_back(matrix, pattern, colouring):
    """The entries from the products of the matrix with sums of unit vectors."""
    seeds = colouring.colours[:, None] == np.arange(colouring.count)
    products = (matrix @ seeds).T.reshape(-1)
    return pattern.with_data(products[colouring.source]).toarray()


@settings(max_examples=300, deadline=None)
@given(matrices())
def test_columns_of_one_colour_share_no_row(matrix):
    pattern = SparsityPattern.of(matrix)
    colouring = coloured_columns(pattern)
    np.testing.assert_allclose(read_back(matrix, pattern, colouring), matrix)
    assert colouring.count <= max(1, matrix.shape[1])


@settings(max_examples=300, deadline=None)
@given(matrices())
def test_rows_are_the_columns_of_the_transpose(matrix):
    pattern = SparsityPattern.of(matrix)
    mode, colouring = chosen(pattern, "vjp", symmetric=False, reverse_only=False)
    seeds = colouring.colours == np.arange(colouring.count)[:, None]
    products = (seeds @ matrix).reshape(-1)
    assert mode == "vjp"
    np.testing.assert_allclose(pattern.with_data(products[colouring.source]).toarray(), matrix)


@settings(max_examples=500, deadline=None)
@given(matrices(square=True))
def test_symmetric_entries_are_read_from_one_of_two_places(half):
    matrix = half + half.T
    pattern = SparsityPattern.of(matrix)
    colouring = coloured_symmetric(pattern)
    np.testing.assert_allclose(read_back(matrix, pattern, colouring), matrix)
    assert colouring.count <= coloured_columns(pattern).count


def test_counts_of_known_matrices():
    tridiagonal = sp.diags_array([1.0, 1.0, 1.0], offsets=[-1, 0, 1], shape=(50, 50))
    arrow = np.eye(50)
    arrow[0] = arrow[:, 0] = 1
    assert coloured_columns(SparsityPattern.of(tridiagonal)).count == 3
    assert coloured_columns(SparsityPattern.of(np.eye(50))).count == 1
    assert coloured_columns(SparsityPattern.of(arrow)).count == 50
    assert coloured_symmetric(SparsityPattern.of(arrow)).count == 2
    assert chosen(SparsityPattern.of(np.ones((1, 50))), "auto", False, False)[0] == "vjp"
    assert chosen(SparsityPattern.of(np.ones((50, 1))), "auto", False, False)[0] == "jvp"


def test_the_empty_pattern_has_no_colours():
    assert coloured_columns(SparsityPattern.of(np.zeros((3, 0)))).count == 0


def test_a_dense_row_and_a_dense_column_of_a_large_matrix_are_refused():
    n = 20_000
    rows = np.concatenate([np.zeros(n, int), np.arange(n)])
    columns = np.concatenate([np.arange(n), np.zeros(n, int)])
    pattern = SparsityPattern.of(sp.coo_array((np.ones(2 * n), (rows, columns)), shape=(n, n)))
    with pytest.raises(pb.DensePattern, match="row 0 has 20000"):
        chosen(pattern, "auto", False, False)
    with pytest.raises(pb.DensePattern, match="row 0 has 20000"):
        chosen(pattern, "auto", True, False)
