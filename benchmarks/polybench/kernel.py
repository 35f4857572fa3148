"""What a program of the family is: how it is made for given sizes, and the sizes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import jax
import numpy as np

Array = Any
# A program and its arguments, of which the first is the main input: by that the result is differentiated.
Program = tuple[Callable[..., Any], tuple[Array, ...]]


class Kind(Enum):
    """What the programs have in common by which they are judged together."""

    INDEXED = "loops with indexed updates"
    STENCIL = "stencils"
    PRODUCT = "matrix products"
    LEARNING = "statistics and learning"


@dataclass(frozen=True, eq=False)
class Kernel:
    """make: the program for sizes. small, medium: Polybench's or NPBench's. quick: for a test.

    medium: None where a call of JAX's derivative takes minutes.
    x64: whether the data are float64.
    """

    name: str
    kind: Kind
    make: Callable[..., Program]
    small: tuple[int, ...]
    medium: tuple[int, ...] | None
    quick: tuple[int, ...]
    x64: bool = True


def sum_of_results(program: Callable[..., Any]) -> Callable[..., Array]:
    """The number that is differentiated: the sum of all that the program gives."""
    return lambda *args: sum(leaf.sum() for leaf in jax.tree.leaves(program(*args)))


def uniform(*shapes: tuple[int, ...], dtype: type = np.float64) -> tuple[np.ndarray, ...]:
    """Arrays of numbers between 0 and 1, the same each time."""
    rng = np.random.default_rng(0)
    return tuple(rng.uniform(size=shape).astype(dtype) for shape in shapes)
