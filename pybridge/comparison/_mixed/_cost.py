"""What an equation costs in 64 bits and saves in 32, in additions: rough, for a choice among many."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...ir.program import Equation
from ...ir.schema import names
from ...ir.types import TensorType

_CAST = 0.5  # an element whose precision changes
_MOVED = 0.5  # an element that is read and written

_WORK = {
    **dict.fromkeys(names("div sqrt rsqrt cbrt rem atan2"), 4.0),
    **dict.fromkeys(names("exp exp2 log log2 expm1 log1p tanh logistic sin cos tan"), 12.0),
    **dict.fromkeys(names("pow asin acos atan sinh cosh asinh acosh atanh"), 20.0),
    **dict.fromkeys(names("erf erfc erf_inv lgamma digamma bessel_i0e bessel_i1e igamma igammac"), 40.0),
    **dict.fromkeys(names("constant iota copy stop_gradient saveable optimization_barrier"), 0.0),
}
_MATRICES = frozenset(
    names(
        """
        triangular_solve cholesky eigh qr geqrf geqp3 ormqr lu eig hessenberg schur tridiagonal
        householder_product svd
        """
    )
)


def saving(eq: Equation) -> float:
    """32 bits halve the work."""
    return 0.5 * _work(eq)


def cast_cost(type_: TensorType, runs: float) -> float:
    return _CAST * _size(type_) * runs


def _work(eq: Equation) -> float:
    operands = [a.type for a in eq.inputs]
    size = float(max(map(_size, (*operands, *(v.type for v in eq.outputs))), default=1))
    attrs: Any = eq.attrs
    match eq.op:
        case "dot_general":
            contracted = math.prod(_dims(operands[0])[axis] for axis in attrs["lhs_contract"])
            return 2.0 * contracted * _size(eq.outputs[0].type)
        case "conv_general_dilated":
            channels = _dims(operands[1])[attrs["rhs_spec"][0]]
            return 2.0 * _size(eq.outputs[0].type) * _size(operands[1]) / max(1, channels)
        case op if op in _MATRICES:
            return size * max(_dims(operands[0]), default=1)
        case "fft" | "sort" | "top_k":
            return 5.0 * size * math.log2(max(2.0, size))
    if eq.op in _WORK:
        return _WORK[eq.op] * size
    return (_MOVED if len(operands) == 1 and not eq.op.startswith(("reduce", "cum")) else 1.0) * size


def _dims(type_: TensorType) -> Sequence[int]:
    return [dim for dim in type_.shape if isinstance(dim, int)]


def _size(type_: TensorType) -> int:
    return math.prod(_dims(type_))
