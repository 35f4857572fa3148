"""Functions of JAX as Julia calls them: the Python half of julia/ext/JaxprADPythonCallExt.jl.

A value is a list of addresses, of the memory of each number and array of the arguments; all else in the
arguments is known when a call is made for it. Julia's array of size (m, n) is an array of shape (n, m).
"""

from __future__ import annotations

import contextlib
import ctypes
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..frontend.tracing import trace
from ..ir.numerals import DTYPES
from ..runtime.archives import save
from . import trees

_WIDE = tuple(DTYPES[name] for name in ("f64", "c128", "i64", "u64"))

Lent = list[tuple[int, np.ndarray]]
"""The address of each array, and what keeps its memory."""


@dataclass(frozen=True)
class Slot:
    """The place of an array in the list of all."""

    place: int


class JaxCall:
    """A function at arguments of one structure and set of types: its value and derivatives, compiled by XLA.

    arguments: the tuple of its arguments, with Slots in the place of arrays.
    types: (dtype, shape) of each array, in the names of Programs.
    result: the tree of its result as text (`trees`).

    The caller keeps the memory at the addresses until the call returns; nothing uses it afterwards.
    """

    def __init__(self, f: Callable, arguments: tuple, types: Sequence[tuple[str, Sequence[int]]]):
        self._f, self._arguments = f, arguments
        self._types = [jax.ShapeDtypeStruct(tuple(shape), DTYPES[dtype]) for dtype, shape in types]
        self._active = list(map(_inexact, self._types))
        self._wide = any(t.dtype in _WIDE for t in self._types)
        with self._widths():
            result = jax.eval_shape(self._result, *self._types)
        self.result = trees.text(trees.types_of(result))
        self._given = list(jax.tree.leaves(result))
        self._differentiable = list(map(_inexact, self._given))
        self._value = jax.jit(self._leaves)
        self._push = jax.jit(self._pushed)
        self._forward = jax.jit(self._linearized)
        self._back = jax.jit(lambda pull, cotangents: pull(cotangents)[0])

    def value(self, addresses: Sequence[int]) -> Lent:
        """The leaves of the result."""
        with self._widths():
            return _lent(self._value(*self._borrowed(addresses)), addresses)

    def jvp(self, addresses: Sequence[int], tangents: Sequence[int]) -> tuple[Lent, Lent]:
        """The leaves of the result and the tangents of its floats, from tangents of the floats given."""
        floats = _those(self._active, self._types)
        with self._widths():
            y, pushed = self._push(self._borrowed(addresses), _arrays(floats, tangents))
            return _lent(y, addresses), _lent(pushed, tangents)

    def vjp(self, addresses: Sequence[int]) -> tuple[Lent, Callable[[Sequence[int]], Lent]]:
        """The leaves of the result, and the pullback of its floats: to cotangents of the floats given."""
        with self._widths():
            arrays = [jnp.array(x, copy=True) for x in self._borrowed(addresses)]
            y, pull = self._forward(arrays)
            value = _lent([np.array(v) for v in y], ())  # a copy: the residuals may share its memory

        def pullback(cotangents: Sequence[int]) -> Lent:
            with self._widths():
                given = _arrays(_those(self._differentiable, self._given), cotangents)
                return _lent(self._back(pull, given), cotangents)

        return value, pullback

    def save(self, path: str | Path) -> None:
        """The function of the arrays as a Program, in a file. Raises what `pb.trace` raises."""
        with self._widths():
            save(path, trace(self._leaves)(*self._types))

    def _widths(self) -> contextlib.AbstractContextManager:
        return jax.enable_x64(True) if self._wide else contextlib.nullcontext()

    def _borrowed(self, addresses: Sequence[int]) -> list[jax.Array]:
        return _arrays(self._types, addresses)

    def _result(self, *arrays: Any) -> Any:
        def placed(x: Any) -> Any:
            return arrays[x.place] if isinstance(x, Slot) else x

        return self._f(*jax.tree.map(placed, self._arguments, is_leaf=lambda x: isinstance(x, Slot)))

    def _leaves(self, *arrays: Any) -> list:
        return jax.tree.leaves(self._result(*arrays))

    def _of_floats(self, arrays: Sequence[Any]) -> tuple[Callable, list]:
        """The function of the floats alone, to its floats and all that it gives; and the floats."""
        fixed = _those([not a for a in self._active], arrays)

        def of_floats(floats: Sequence[Any]) -> tuple[list, list]:
            y = self._leaves(*_merged(self._active, floats, fixed))
            return _those(self._differentiable, y), y

        return of_floats, _those(self._active, arrays)

    def _pushed(self, arrays: Sequence[Any], tangents: Sequence[Any]) -> tuple[list, list]:
        of_floats, floats = self._of_floats(arrays)
        _, pushed, y = jax.jvp(of_floats, (floats,), (list(tangents),), has_aux=True)
        return y, pushed

    def _linearized(self, arrays: Sequence[Any]) -> tuple[list, Callable]:
        of_floats, floats = self._of_floats(arrays)
        _, pull, y = jax.vjp(of_floats, floats, has_aux=True)
        return y, pull


def _inexact(x: Any) -> bool:
    return jnp.issubdtype(x.dtype, jnp.inexact)


def _those(mask: Sequence[bool], values: Sequence[Any]) -> list:
    return [v for wanted, v in zip(mask, values, strict=True) if wanted]


def _merged(mask: Sequence[bool], floats: Sequence[Any], others: Sequence[Any]) -> list:
    """One list in order: floats where the mask says so."""
    first, second = iter(floats), iter(others)
    return [next(first) if wanted else next(second) for wanted in mask]


def _arrays(types: Sequence[jax.ShapeDtypeStruct], addresses: Sequence[int]) -> list[jax.Array]:
    return [_array(t, address) for t, address in zip(types, addresses, strict=True)]


def _array(t: jax.ShapeDtypeStruct, address: int) -> jax.Array:
    """The array at an address: that memory itself, where it lies as XLA wants it."""
    size = math.prod(t.shape) * t.dtype.itemsize
    if size == 0:
        return jnp.zeros(t.shape, t.dtype)
    x = np.frombuffer((ctypes.c_char * size).from_address(address), t.dtype).reshape(t.shape)
    try:
        return jax.dlpack.from_dlpack(x)
    except (BufferError, RuntimeError, TypeError, ValueError):  # a dtype that DLPack does not have
        return jnp.array(x, copy=True)


def _lent(values: Sequence[Any], given: Sequence[int]) -> Lent:
    """What was computed, when it is. A result that is an argument, or another result, is copied."""
    taken = set(given)
    lent = []
    for value in jax.block_until_ready(list(values)):
        x = np.asarray(value)
        address = x.ctypes.data
        if address in taken or not x.flags.c_contiguous:
            x = np.array(x, order="C")
            address = x.ctypes.data
        taken.add(address)
        lent.append((address, x))
    return lent
