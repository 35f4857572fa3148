"""Primitives that move, make or cut arrays, at places known from the attributes."""

from __future__ import annotations

import numpy as np
from jax import lax

from ...ir.numerals import DTYPES, dtype_name
from ..dimensions import to_dim
from .spec import Spec, dims, integers


def _broadcast_in_dim(x, *, shape, dims):
    return lax.broadcast_in_dim(x, shape, dims)


def _reshape(x, *, shape):
    return lax.reshape(x, shape)


def _squeeze(x, *, dims):
    return lax.squeeze(x, dims)


def _transpose(x, *, perm):
    return lax.transpose(x, perm)


def _rev(x, *, dims):
    return lax.rev(x, dims)


def _concatenate(*xs, dim):
    return lax.concatenate(xs, dim)


def _pad(x, value, *, low, high, interior):
    return lax.pad(x, value, list(zip(low, high, interior, strict=True)))


def _slice(x, *, start, limit, strides):
    return lax.slice(x, start, limit, strides)


def _split(x, *, axis, sizes):
    return lax.split(x, sizes, axis)


def _iota(*, dtype, shape, dim):
    return lax.broadcasted_iota(DTYPES[dtype], shape, dim)


def _constant(*, value):
    """`value` is the array itself here: the emitter knows the type and holds the data behind a ref."""
    return value


def _dim_size(*, dim, dtype):
    # A symbolic size becomes an array by itself, an int by numpy.
    if isinstance(dim, int):
        return np.asarray(dim, DTYPES[dtype])
    return lax.convert_element_type(dim, DTYPES[dtype])


def _optimization_barrier(*xs):
    return lax.optimization_barrier(xs)


def _padding(eqn):
    low, high, interior = (
        zip(*eqn.params["padding_config"], strict=True) if eqn.params["padding_config"] else ((),) * 3
    )
    return {"low": dims(low), "high": dims(high), "interior": integers(interior)}


def _slicing(eqn):
    start, limit, strides = (eqn.params[k] for k in ("start_indices", "limit_indices", "strides"))
    return {"start": dims(start), "limit": dims(limit), "strides": dims(strides or (1,) * len(start))}


def _iota_attrs(eqn):
    return {
        "dtype": dtype_name(eqn.params["dtype"]),
        "shape": dims(eqn.params["shape"]),
        "dim": int(eqn.params["dimension"]),
    }


SPECS = [
    Spec(
        "broadcast_in_dim",
        _broadcast_in_dim,
        lambda eqn: {
            "shape": dims(eqn.params["shape"]),
            "dims": integers(eqn.params["broadcast_dimensions"]),
        },
    ),
    Spec("reshape", _reshape, lambda eqn: {"shape": dims(eqn.params["new_sizes"])}),
    Spec("squeeze", _squeeze, lambda eqn: {"dims": integers(eqn.params["dimensions"])}),
    Spec("transpose", _transpose, lambda eqn: {"perm": integers(eqn.params["permutation"])}),
    Spec("rev", _rev, lambda eqn: {"dims": integers(eqn.params["dimensions"])}),
    Spec("concatenate", _concatenate, lambda eqn: {"dim": int(eqn.params["dimension"])}),
    Spec("pad", _pad, _padding),
    Spec("slice", _slice, _slicing),
    Spec(
        "split",
        _split,
        lambda eqn: {"axis": int(eqn.params["axis"]), "sizes": dims(eqn.params["sizes"])},
    ),
    Spec("iota", _iota, _iota_attrs),
    Spec("constant", _constant, lax=()),
    Spec(
        "dim_size",
        _dim_size,
        lambda eqn: {"dim": to_dim(eqn.params["dim"]), "dtype": dtype_name(eqn.outvars[0].aval.dtype)},
        lax=("dim_as_value",),
    ),
    Spec("optimization_barrier", _optimization_barrier),
]
