"""What a Program for a batch is a batch of, so that the derivative of each item may be computed at once."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
from jax import lax

from ..frontend.adapter.gradients import Levels
from ..ir.dead_code import is_symbolic
from ..ir.program import Program
from .batches import BYTES_OF_BLOCKS, Batched, has_batch_rules, kept_at_most, loop_bytes
from .tangents import gradient

LEAST_BYTES = BYTES_OF_BLOCKS
"""What all items' loops keep from which on gradients are computed with the values, block by block."""

_LEAST_SAVED = 4
"""How many times as large as the items' gradients that are added up is what need not be kept for them."""


@dataclass(frozen=True)
class Items:
    """A Program for one item, for which another Program computes all results of a batch.

    hoisted: how many of the other's first arguments this one has not.
    levels: for each batch, the outer ones first, which arguments have an axis for it in front; results do.
    """

    program: Program
    hoisted: int = 0
    levels: Levels = ()

    def one_pass(self, active: Sequence[int], args: Sequence[Any]) -> tuple[Program, tuple[int, ...]] | None:
        """The gradient of an item with its value, and by which of its arguments those of the batch are.

        args: those of the items. None where there is no gradient, or a second pass costs less: where what the
        loops of all items keep for it stays in a cache, or is less than their gradients by arguments that
        items have in common, which are added up.
        """
        places = tuple(i - self.hoisted for i in active)
        items = math.prod(self._sizes(args))
        if self.levels and items * kept_at_most(self.program) < LEAST_BYTES:
            return None
        whole = gradient(self.program, places)
        if whole is None or (self.levels and not self._pays(whole, places, items)):
            return None
        return whole, places

    def _pays(self, whole: Program, places: Sequence[int], items: int) -> bool:
        kept = loop_bytes(whole)
        in_common = sum(self.program.input_types[i].bytes for i in places if self._missing(i))
        return items * kept >= LEAST_BYTES and kept >= _LEAST_SAVED * in_common

    def spread(self, place: int, xs: Sequence[Any], array: Any) -> Any:
        """An array like an argument, with the axes of all batches in front."""
        missing = self._missing(place)
        if not missing:
            return array
        array = lax.expand_dims(array, missing)
        return jnp.broadcast_to(array, (*self._sizes(xs), *array.shape[len(self.levels) :]))

    def _missing(self, place: int) -> tuple[int, ...]:
        """The batches of which all items have this argument in common."""
        return tuple(k for k, mapped in enumerate(self.levels) if not mapped[place])

    def _sizes(self, xs: Sequence[Any]) -> Iterator[int]:
        for k, mapped in enumerate(self.levels):
            place = mapped.index(True)
            yield xs[place].shape[sum(outer[place] for outer in self.levels[:k])]

    def in_batch(self, dims: Sequence[Any], whole: Batched) -> Items | None:
        """Of a batch of the other Program, with the batch axes of its arguments at `dims`.

        None where an axis is not in front, a result is the same for the whole batch, a user's rule is for
        all items together, or sizes are symbolic.
        """
        in_common = any(axis is not None for axis in dims[: self.hoisted])
        in_front = not any(dims) and all(axis == 0 for axis in whole.dims)
        if in_common or not in_front or has_batch_rules(self.program) or is_symbolic(whole.program):
            return None
        mapped = tuple(axis is not None for axis in dims[self.hoisted :])
        return Items(self.program, self.hoisted + len(whole.hoisted), (mapped, *self.levels))
