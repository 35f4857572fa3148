"""Reductions, cumulative reductions and sorting."""

from __future__ import annotations

from jax import lax

from ..dimensions import to_dim
from ..numerals import DTYPES, dtype_name
from .row import Row, integers, names


def _reduce_row(op: str) -> Row:
    reduce = getattr(lax, op)

    def emit(x, *, axes):
        return reduce(x, axes)

    return Row(op, emit, ("axes",), lambda eqn: {"axes": integers(eqn.params["axes"])})


def _arg_row(op: str) -> Row:
    arg = getattr(lax, op)

    def emit(x, *, axis, dtype):
        return arg(x, axis, DTYPES[dtype])

    def read(eqn):
        (axis,) = eqn.params["axes"]
        return {"axis": int(axis), "dtype": dtype_name(eqn.params["index_dtype"])}

    return Row(op, emit, ("axis", "dtype"), read)


def _cumulative_row(op: str) -> Row:
    cumulative = getattr(lax, op)

    def emit(x, *, axis, reverse):
        return cumulative(x, axis=axis, reverse=reverse)

    def read(eqn):
        return {"axis": int(eqn.params["axis"]), "reverse": bool(eqn.params["reverse"])}

    return Row(op, emit, ("axis", "reverse"), read)


def _sort(*xs, dim, stable, num_keys):
    return lax.sort(xs, dimension=dim, is_stable=stable, num_keys=num_keys)


def _sorting(eqn):
    return {
        "dim": int(eqn.params["dimension"]),
        "stable": bool(eqn.params["is_stable"]),
        "num_keys": int(eqn.params["num_keys"]),
    }


def _top_k(x, *, k, axis):
    return lax.top_k(x, k, axis=axis)


ROWS = [
    *map(_reduce_row, names("reduce_sum reduce_prod reduce_max reduce_min reduce_and reduce_or reduce_xor")),
    *map(_arg_row, ["argmax", "argmin"]),
    *map(_cumulative_row, ["cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"]),
    Row("sort", _sort, ("dim", "stable", "num_keys"), _sorting),
    Row(
        "top_k",
        _top_k,
        ("k", "axis"),
        lambda eqn: {"k": to_dim(eqn.params["k"]), "axis": int(eqn.params["axis"])},
    ),
]
