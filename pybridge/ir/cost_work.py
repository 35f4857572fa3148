"""What is to be done for an equation: which row of the cost model's table it is, and how much work."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import cast

from .numerals import DTYPES
from .program import Equation
from .types import Atom


def kind(eq: Equation) -> str:
    """The row of the table: the primitive, or a part of it that differs."""
    return _KIND.get(eq.op, _named)(eq)


def units(eq: Equation) -> float:
    """Elements or multiplications, in numbers of four bytes."""
    return _WORK.get(eq.op, elements)(eq) * max(map(_itemsize, eq.outputs), default=4) / 4


def size(atom: Atom) -> float:
    """In numbers of four bytes."""
    return atom.type.bytes / 4


def elements_of(atom: Atom) -> int:
    return math.prod(_shape(atom))


def _itemsize(atom: Atom) -> int:
    return DTYPES[atom.type.dtype].itemsize


# ---- kinds of equations of one primitive, where that is more than one row of the table


def _named(eq: Equation) -> str:
    return eq.op


def _product_kind(eq: Equation) -> str:
    """XLA is ahead in large results of few terms."""
    contracted, batch, rows, columns = _product_sizes(eq)
    if contracted == 1:
        return "mul"
    if min(rows, columns) == 1:
        return "dot_vector" if batch * rows * columns * contracted > _CACHED else "dot_cached_vector"
    large = rows * columns * contracted >= _LARGE_PRODUCT
    return "dot_outer" if batch == 1 and contracted <= _FEW_TERMS and large else eq.op


def _convolution_kind(eq: Equation) -> str:
    if eq.attrs["batch_groups"] > 1:
        return "conv_of_batches"
    return "conv_of_features" if eq.attrs["feature_groups"] > 1 else eq.op


def _svd_kind(eq: Equation) -> str:
    return eq.op if eq.attrs["compute_uv"] else "singular_values"


def _slice_kind(eq: Equation) -> str:
    return "strided_slice" if any(step != 1 for step in eq.attrs["strides"]) else eq.op


def _scatter_kind(eq: Equation) -> str:
    return eq.op if eq.attrs["update_window_dims"] else "scatter_add_numbers"


def _solve_kind(eq: Equation) -> str:
    return "triangular_solve_vector" if _shape(eq.inputs[1])[-1] == 1 else eq.op


def _cumulative_kind(eq: Equation) -> str:
    """Natively lines of some length are vectors."""
    return eq.op if _shape(eq.inputs[0])[eq.attrs["axis"]] >= _LONG_LINE else "cumsum_of_short"


_FEW_TERMS, _LARGE_PRODUCT, _CACHED, _LONG_LINE = 16, 2_000_000, 1 << 16, 1 << 10
_SMALL_MATRIX, _SMALL_RIGHT_SIDE = 100, 10

_KIND: Mapping[str, Callable[[Equation], str]] = {
    "dot_general": _product_kind,
    "conv_general_dilated": _convolution_kind,
    "cumsum": _cumulative_kind,
    "scatter_add": _scatter_kind,
    "slice": _slice_kind,
    "svd": _svd_kind,
    "triangular_solve": _solve_kind,
}

# ---- work, in elements or in multiplications


def _shape(atom: Atom) -> tuple[int, ...]:
    return cast(tuple[int, ...], atom.type.shape)  # of Programs without symbolic dimensions


def dtype(eq: Equation) -> str:
    """Of the numbers that it computes with."""

    def weight(atom: Atom) -> tuple[int, bool]:
        return elements_of(atom), atom.type.inexact

    return max(eq.inputs, key=weight, default=eq.outputs[0]).type.dtype


def elements(eq: Equation) -> float:
    """Of the largest array."""
    return max(elements_of(atom) for atom in (*eq.inputs, *eq.outputs))


def _product_sizes(eq: Equation) -> tuple[int, int, int, int]:
    """Of terms, of pairs of a stack, of rows and of columns of the result."""
    left, right = map(_shape, eq.inputs)
    contracted, batch = (math.prod(left[k] for k in eq.attrs[n]) for n in ("lhs_contract", "lhs_batch"))
    rows, columns = (math.prod(shape) // max(1, contracted * batch) for shape in (left, right))
    return contracted, batch, rows, columns


def _multiplied(eq: Equation) -> float:
    return math.prod(_product_sizes(eq))


def stacked(eq: Equation) -> int:
    """Pairs of a stack, which XLA multiplies one by one."""
    _, batch, _, _ = _product_sizes(eq)
    return batch if batch > 1 else 0


def _convolved(eq: Equation) -> float:
    kernel = _shape(eq.inputs[1])
    return math.prod(_shape(eq.outputs[0])) * math.prod(kernel) / max(1, kernel[eq.attrs["rhs_spec"][0]])


def _transformed(eq: Equation) -> float:
    return elements(eq) * math.log2(max(2, math.prod(eq.attrs["fft_lengths"])))


def _sorted(eq: Equation) -> float:
    return elements(eq) * math.log2(max(2, max(_shape(eq.inputs[0]), default=2)))


def _factored(eq: Equation) -> float:
    """Of each matrix rows times columns times the fewer of both; LAPACK's small matrices take longer."""
    shape = _shape(eq.inputs[0])
    return math.prod(shape) * (min(shape[-2:]) + _SMALL_MATRIX)


def _solved(eq: Equation) -> float:
    matrix, right = map(_shape, eq.inputs)
    return math.prod(matrix) * (math.prod(right) / max(1, math.prod(matrix[:-1])) + _SMALL_RIGHT_SIDE)


_WORK: Mapping[str, Callable[[Equation], float]] = {
    "conv_general_dilated": _convolved,
    "dot_general": _multiplied,
    "fft": _transformed,
    "sort": _sorted,
    "triangular_solve": _solved,
    **dict.fromkeys(("cholesky", "eigh", "qr", "geqrf", "householder_product", "lu", "svd"), _factored),
}
