"""What a Program for a batch is a batch of, so that the derivative of each item may be computed at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..frontend.adapter.gradients import Levels
from ..ir.program import Program
from .batches import Batched, has_batch_rules


@dataclass(frozen=True)
class Items:
    """A Program for one item, for which another Program computes all results of a batch.

    hoisted: how many of the other's first arguments this one has not.
    levels: for each batch, the outer ones first, which arguments have an axis for it in front; results do.
    """

    program: Program
    hoisted: int = 0
    levels: Levels = ()

    def each(self, active: Sequence[int]) -> tuple[int, ...] | None:
        """Which arguments of an item those of the other Program are; None where items have some in common."""
        places = tuple(i - self.hoisted for i in active)
        return places if all(flags[i] for flags in self.levels for i in places) else None

    def in_batch(self, dims: Sequence[Any], whole: Batched) -> Items | None:
        """Of a batch of the other Program, with the batch axes of its arguments at `dims`.

        None where an axis is not in front, a result is the same for the whole batch, or a user's rule is for
        all items together.
        """
        in_common = any(axis is not None for axis in dims[: self.hoisted])
        in_front = not any(dims) and all(axis == 0 for axis in whole.dims)
        if in_common or not in_front or has_batch_rules(self.program):
            return None
        mapped = tuple(axis is not None for axis in dims[self.hoisted :])
        return Items(self.program, self.hoisted + len(whole.hoisted), (mapped, *self.levels))
