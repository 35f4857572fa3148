"""Reductions, cumulative reductions and sorting."""

from __future__ import annotations

from jax import lax

from ...ir.numerals import DTYPES, dtype_name
from ...ir.schema import names
from ..dimensions import to_dim
from .spec import Spec, integers


def _reduction(op: str) -> Spec:
    reduce = getattr(lax, op)

    def emit(x, *, axes):
        return reduce(x, axes)

    return Spec(op, emit, lambda eqn: {"axes": integers(eqn.params["axes"])})


def _arg_reduction(op: str) -> Spec:
    arg = getattr(lax, op)

    def emit(x, *, axis, dtype):
        return arg(x, axis, DTYPES[dtype])

    def read(eqn):
        (axis,) = eqn.params["axes"]
        return {"axis": int(axis), "dtype": dtype_name(eqn.params["index_dtype"])}

    return Spec(op, emit, read)


def _cumulative(op: str) -> Spec:
    cumulative = getattr(lax, op)

    def emit(x, *, axis, reverse):
        return cumulative(x, axis=axis, reverse=reverse)

    def read(eqn):
        return {"axis": int(eqn.params["axis"]), "reverse": bool(eqn.params["reverse"])}

    return Spec(op, emit, read)


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


SPECS = [
    *map(_reduction, names("reduce_sum reduce_prod reduce_max reduce_min reduce_and reduce_or reduce_xor")),
    *map(_arg_reduction, ["argmax", "argmin"]),
    *map(_cumulative, ["cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"]),
    Spec("sort", _sort, _sorting),
    Spec(
        "top_k",
        _top_k,
        lambda eqn: {"k": to_dim(eqn.params["k"]), "axis": int(eqn.params["axis"])},
    ),
]
