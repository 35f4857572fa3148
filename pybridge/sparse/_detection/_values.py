"""Equations on numpy arrays: known values, and the movement of elements followed by their indices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from ...frontend import emission
from ...ir.numerals import DTYPES
from ...ir.program import Equation, Program
from ...ir.types import Literal
from ._abstract import shape_of

Arrays = list[np.ndarray]


def evaluated(program: Program, eq: Equation, operands: Sequence[np.ndarray]) -> Arrays:
    """The results of an equation whose operands are known."""
    function = MOVEMENTS.get(eq.op) or _FUNCTIONS.get(eq.op)
    if function is None:
        with jax.ensure_compile_time_eval():
            given = [
                DTYPES[a.dtype].type(a.value) if isinstance(a, Literal) else x
                for a, x in zip(eq.inputs, operands, strict=True)
            ]
            return [np.asarray(y) for y in emission.apply(program, eq, given)]
    with np.errstate(all="ignore"):
        results = function(eq, *operands)
        results = results if isinstance(results, list) else [results]
        return [
            np.broadcast_to(np.asarray(y).astype(DTYPES[v.type.dtype]), shape_of(v))
            for y, v in zip(results, eq.outputs, strict=True)
        ]


# Movements, in which each element of the results is one of an operand


def _broadcast(eq: Equation, x: np.ndarray) -> np.ndarray:
    shape, dims = eq.attrs["shape"], eq.attrs["dims"]
    aligned = [1] * len(shape)
    for size, dim in zip(x.shape, dims, strict=True):
        aligned[dim] = size
    return np.broadcast_to(x.reshape(aligned), shape)


def _slice(eq: Equation, x: np.ndarray) -> np.ndarray:
    bounds = zip(eq.attrs["start"], eq.attrs["limit"], eq.attrs["strides"], strict=True)
    return x[tuple(slice(*b) for b in bounds)]


def _split(eq: Equation, x: np.ndarray) -> Arrays:
    return np.split(x, np.cumsum(eq.attrs["sizes"])[:-1], eq.attrs["axis"])


def _concatenate(eq: Equation, *xs: np.ndarray) -> np.ndarray:
    return np.concatenate(xs, eq.attrs["dim"])


def _pad(eq: Equation, x: np.ndarray, value: np.ndarray) -> np.ndarray:
    low, high, interior = (eq.attrs[name] for name in ("low", "high", "interior"))
    spread = [max(n + (n - 1) * i, 0) for n, i in zip(x.shape, interior, strict=True)]
    shape = [max(p, 0) + n + max(q, 0) for p, n, q in zip(low, spread, high, strict=True)]
    out = np.full(shape, value, x.dtype)
    inside = zip(low, spread, interior, strict=True)
    out[tuple(slice(max(p, 0), max(p, 0) + n, i + 1) for p, n, i in inside)] = x
    cut = zip(low, high, out.shape, strict=True)
    return out[tuple(slice(max(-p, 0), n - max(-q, 0)) for p, q, n in cut)]


def _same(eq: Equation, x: np.ndarray, *_: Any) -> np.ndarray:
    return x


def _select(eq: Equation, which: np.ndarray, *cases: np.ndarray) -> np.ndarray:
    shape = shape_of(eq.outputs[0])
    places = np.clip(which.astype(np.int64), 0, len(cases) - 1)
    full = np.stack([np.broadcast_to(c, shape) for c in cases])
    return np.take_along_axis(full, np.broadcast_to(places, shape)[None], 0)[0]


MOVEMENTS: dict[str, Callable[..., Any]] = {
    "broadcast_in_dim": _broadcast,
    "reshape": lambda eq, x: x.reshape(eq.attrs["shape"]),
    "squeeze": lambda eq, x: x.reshape(shape_of(eq.outputs[0])),
    "transpose": lambda eq, x: x.transpose(eq.attrs["perm"]),
    "rev": lambda eq, x: np.flip(x, eq.attrs["dims"]),
    "slice": _slice,
    "split": _split,
    "concatenate": _concatenate,
    "pad": _pad,
    "copy": _same,
    "stop_gradient": _same,
    "saveable": _same,
    "optimization_barrier": lambda eq, *xs: list(xs),
}


# What indices and conditions are commonly made by, which is faster here than one operation of JAX at a time


def _iota(eq: Equation) -> np.ndarray:
    shape, dim = eq.attrs["shape"], eq.attrs["dim"]
    return np.broadcast_to(np.arange(shape[dim]).reshape([-1] + [1] * (len(shape) - dim - 1)), shape)


def _power(x: np.ndarray, exponent: int) -> np.ndarray:
    power = x ** np.asarray(abs(exponent), x.dtype)
    return power if exponent >= 0 else 1 / power


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "iota": _iota,
    "select_n": _select,
    "convert_element_type": _same,
    "clamp": lambda eq, low, x, high: np.minimum(np.maximum(x, low), high),
    "integer_pow": lambda eq, x: _power(x, eq.attrs["y"]),
    "add": lambda eq, x, y: x + y,
    "sub": lambda eq, x, y: x - y,
    "mul": lambda eq, x, y: x * y,
    "neg": lambda eq, x: -x,
    "abs": lambda eq, x: np.abs(x),
    "max": lambda eq, x, y: np.maximum(x, y),
    "min": lambda eq, x, y: np.minimum(x, y),
    "eq": lambda eq, x, y: x == y,
    "ne": lambda eq, x, y: x != y,
    "lt": lambda eq, x, y: x < y,
    "le": lambda eq, x, y: x <= y,
    "gt": lambda eq, x, y: x > y,
    "ge": lambda eq, x, y: x >= y,
}
