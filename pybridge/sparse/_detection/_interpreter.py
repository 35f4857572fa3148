"""Dependences through a Program, equation by equation."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...errors import DensePattern
from ...ir.numerals import DTYPES
from ...ir.program import Equation, Program
from ...ir.schema import names
from ...ir.types import Atom, Literal
from . import _movements, _products
from ._abstract import Abstract, Matrix, grouped, rows_of, shape_of, union
from ._nested import NESTED
from ._state import Detection
from ._values import MOVEMENTS, evaluated

_CONSTANT = frozenset(names("stop_gradient sign floor ceil round is_finite bitcast_convert_type"))
_NESTED = frozenset(["scan", "while", "cond", "custom_jvp", "custom_vjp", "remat", "linear_call"])
_BLOCKS = frozenset(
    names(
        "triangular_solve cholesky eigh qr geqrf geqp3 ormqr lu eig hessenberg schur tridiagonal "
        "householder_product svd"
    )
)
"""Of matrices in the last two axes, batched along the others."""


def detection_of(columns: int) -> Detection:
    """For an argument of so many elements."""
    return Detection(columns, interpret)


def interpret(program: Program, inputs: Sequence[Abstract], detection: Detection) -> list[Abstract]:
    """What is known of the results, by what is known of the inputs.

    Raises DensePattern, with the user's line, where a dependence has too many entries to be written down.
    """
    values = followed(program, inputs, detection)
    return [read(values, a) for a in program.outputs]


def followed(program: Program, inputs: Sequence[Abstract], detection: Detection) -> list[Abstract]:
    """What is known of each variable, at the place of its id."""
    values = list(inputs)
    for eq in program.equations:
        operands = [read(values, a) for a in eq.inputs]
        try:
            results = _results(program, eq, operands, detection)
        except DensePattern as e:
            raise e if e.source else _located(e, eq) from None
        values.extend(results)
    return values


def read(values: Sequence[Abstract], atom: Atom) -> Abstract:
    if isinstance(atom, Literal):
        return Abstract((), None, np.asarray(atom.value, DTYPES[atom.dtype]))
    return values[atom.id]


def _located(error: DensePattern, eq: Equation) -> DensePattern:
    at = f" at {eq.source}" if eq.source else ""
    return DensePattern(
        f"no sparse derivative: of {eq.op}{at}, {error}. Give the pattern, if you know it to be sparser "
        "(pattern=), or use jax.jacobian or jax.hessian of the bridged function",
        source=eq.source,
    )


def _results(
    program: Program, eq: Equation, operands: Sequence[Abstract], detection: Detection
) -> list[Abstract]:
    dependent = any(x.matrix is not None for x in operands)
    if eq.op in _NESTED and (dependent or any(x.value is None for x in operands)):
        return NESTED[eq.op](program, eq, operands, detection)
    known = eq.op not in _NESTED or not dependent
    values: Sequence[np.ndarray | None] = [None] * len(eq.outputs)
    if known and all(x.value is not None for x in operands):
        values = evaluated(program, eq, [x.value for x in operands])  # type: ignore[misc]
    matrices: Sequence[Matrix | None] = [None] * len(eq.outputs)
    if dependent and eq.op not in _CONSTANT:
        matrices = _dependence(eq, operands)
    return [
        Abstract(shape_of(v), m if v.type.inexact else None, value)
        for v, m, value in zip(eq.outputs, matrices, values, strict=True)
    ]


def _dependence(eq: Equation, operands: Sequence[Abstract]) -> Sequence[Matrix | None]:
    rule = _RULES.get(eq.op)
    found = rule(eq, operands) if rule else _elementwise(eq, operands)
    if found is not None:
        return found
    return _blocks(eq, operands)


def _elementwise(eq: Equation, operands: Sequence[Abstract]) -> list[Matrix | None] | None:
    """Elements of results depend on those at the same place; None where shapes differ."""
    shape = shape_of(eq.outputs[0])
    dependent = [x for x in operands if x.matrix is not None]
    if eq.op in _STRUCTURED or any(x.shape != shape for x in dependent):
        return None
    return [union([x.matrix for x in dependent])] * len(eq.outputs)


def _blocks(eq: Equation, operands: Sequence[Abstract]) -> list[Matrix | None]:
    """All of a result depends on all of the operands; of each matrix of a batch, on those of its batch."""
    shapes = [x.shape for x in operands if x.matrix is not None] + [shape_of(v) for v in eq.outputs]
    batch: tuple[int, ...] = ()
    if eq.op in _BLOCKS:
        batch = operands[0].shape[:-2]
        if any(shape[: len(batch)] != batch for shape in shapes):
            batch = ()
    count = int(np.prod(batch, dtype=np.int64))
    together = union(
        [grouped(x.matrix, np.repeat(np.arange(count), x.size // count), count) for x in operands if x.size]
    )
    sizes = [int(np.prod(shape_of(v), dtype=np.int64)) for v in eq.outputs]
    return [rows_of(together, np.repeat(np.arange(count), size // count)) for size in sizes]


def _fft(eq: Equation, operands: Sequence[Abstract]) -> list[Matrix | None] | None:
    x, rank = operands[0], len(eq.attrs["fft_lengths"])
    if eq.outputs[0].type.shape != x.shape:
        return None
    return _movements.over_axes([x], range(len(x.shape) - rank, len(x.shape)))


_Rule = Callable[[Equation, Sequence[Abstract]], Sequence[Matrix | None] | None]

_RULES: dict[str, _Rule] = {
    **dict.fromkeys(MOVEMENTS, _movements.moved),
    "select_n": _movements.selected,
    "gather": _movements.gather,
    "dynamic_slice": _movements.dynamic_slice,
    "dynamic_update_slice": _movements.dynamic_update_slice,
    **{f"scatter{kind}": _movements.scatter for kind in ("", "_add", "_sub", "_mul", "_min", "_max")},
    **{f"reduce_{kind}": _movements.reduced for kind in ("sum", "prod", "max", "min")},
    **{f"cum{kind}": _movements.cumulative for kind in ("sum", "prod", "max", "min", "logsumexp")},
    **{f"reduce_window_{kind}": _movements.reduce_window for kind in ("sum", "max", "min")},
    "sort": _movements.sort,
    "top_k": _movements.top_k,
    "mul": _products.product,
    "dot_general": _products.dot_general,
    "conv_general_dilated": _products.convolution,
    "fft": _fft,
}
_STRUCTURED = _BLOCKS | frozenset(
    names(
        "fft custom_linear_solve tridiagonal_solve while_passes custom_vjp_tangent select_and_gather_add "
        "select_and_scatter_add"
    )
)
