"""Products of arrays, triangular systems and factorisations."""

from __future__ import annotations

from jax import lax

from ..errors import ProgramTypeError, UnsupportedPrimitive
from ..numerals import DTYPES, dtype_name
from .row import Row, integers


def _precision_text(precision) -> str | None:
    """`default`, `high`, `highest`, the name of an algorithm preset, or a pair as `high,default`."""
    if precision is None:
        return None
    if isinstance(precision, tuple):
        left, right = (_precision_text(p) for p in precision)
        return left if left == right else f"{left},{right}"
    if isinstance(precision, lax.Precision):
        return precision.name.lower()
    if isinstance(precision, lax.DotAlgorithmPreset):
        return precision.name
    raise UnsupportedPrimitive(f"dot_general with precision={precision}", primitive="dot_general")


def _precision(text: str | None):
    if text is None:
        return None
    try:
        if "," in text:
            left, right = text.split(",")
            return lax.Precision[left.upper()], lax.Precision[right.upper()]
        return lax.Precision[text.upper()] if text.islower() else lax.DotAlgorithmPreset[text]
    except (KeyError, ValueError):
        raise ProgramTypeError(f"dot_general has no precision {text!r}") from None


def _dot_general(x, y, *, lhs_contract, rhs_contract, lhs_batch, rhs_batch, dtype, precision):
    dimension_numbers = ((lhs_contract, rhs_contract), (lhs_batch, rhs_batch))
    return lax.dot_general(
        x, y, dimension_numbers, precision=_precision(precision), preferred_element_type=DTYPES[dtype]
    )


def _products(eqn):
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = eqn.params["dimension_numbers"]
    return {
        "lhs_contract": integers(lhs_contract),
        "rhs_contract": integers(rhs_contract),
        "lhs_batch": integers(lhs_batch),
        "rhs_batch": integers(rhs_batch),
        "dtype": dtype_name(eqn.outvars[0].aval.dtype),
        "precision": _precision_text(eqn.params["precision"]),
    }


_SOLVE_ATTRS = ("left_side", "lower", "transpose_a", "conjugate_a", "unit_diagonal")


def _solving(eqn):
    return {name: bool(eqn.params[name]) for name in _SOLVE_ATTRS}


def _cholesky(x):
    """Symmetrizing the operand, where it was asked for, is in equations of its own."""
    return lax.linalg.cholesky(x, symmetrize_input=False)


ROWS = [
    Row(
        "dot_general",
        _dot_general,
        ("lhs_contract", "rhs_contract", "lhs_batch", "rhs_batch", "dtype", "precision"),
        _products,
    ),
    Row("triangular_solve", lax.linalg.triangular_solve, _SOLVE_ATTRS, _solving),
    Row("cholesky", _cholesky),
]
