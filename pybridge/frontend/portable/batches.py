"""Functions of matrices as functions of batches of them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
from jax import numpy as jnp

from ..dimensions import is_symbolic


def over_batches(*ranks: int) -> Callable[[Callable], Callable]:
    """For a function of arrays of these ranks: leading axes, the same ones of all operands, are mapped."""

    def decorate(f: Callable) -> Callable:
        @functools.wraps(f)
        def batched(*operands: Any, **options: Any) -> Any:
            mapped: Callable = functools.partial(f, **options)
            arrays = [jnp.asarray(x) for x in operands]
            for _ in range(arrays[0].ndim - ranks[0]):
                mapped = jax.vmap(mapped)
            return mapped(*arrays)

        return batched

    return decorate


def is_empty(x: Any) -> bool:
    """Whether it is known to have no elements; of no axis without any does JAX read one, not even never."""
    return any(not is_symbolic(n) and n == 0 for n in x.shape)
