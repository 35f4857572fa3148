"""A function of an eval: what is computed, on what, and how the result is sent."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from .inputs import Input

Bridge = Callable[..., Callable]
"""`pb.bridge` with an engine chosen: gives a function of JAX that engine's derivatives."""


@dataclass(frozen=True)
class Operands:
    """What a function is called with: arrays, and values for each of which it is compiled anew."""

    arrays: tuple[Any, ...]
    static: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Function:
    """`compute`, which JAX compiles, with what comes before and after it and is not timed."""

    compute: Callable[..., Any]
    read: Callable[[Input], Operands]
    write: Callable[[Any], Any]


def plain(result: Any) -> Any:
    """An array, or a dictionary of arrays, as JSON."""
    return jax.tree.map(lambda array: np.asarray(array).tolist(), result)


@functools.lru_cache(maxsize=64)  # an eval goes through its sizes once, or comes back to one or two
def _compiled(
    compute: Callable, structure: Any, avals: tuple, static: tuple[tuple[str, Any], ...]
) -> Callable:
    jitted = jax.jit(compute, static_argnames=[name for name, _ in static])
    return jitted.lower(*jax.tree.unflatten(structure, avals), **dict(static)).compile()


def compile_function(function: Function, operands: Operands) -> Callable[[], Any]:
    """A call of `compute` on these operands that is compiled, and returns when the result is there."""
    arrays = jax.device_put(operands.arrays)
    leaves, structure = jax.tree.flatten(arrays)
    avals = tuple(jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) for leaf in leaves)
    run = _compiled(function.compute, structure, avals, tuple(operands.static.items()))
    return lambda: jax.block_until_ready(run(*arrays))
