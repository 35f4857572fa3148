"""A report of blame as a page: the source, coloured by what is blamed on its lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._machine import machine
from ._rendering import page
from ._sources import Mark, Place, passages, place_of

if TYPE_CHECKING:
    from .._blame import Blame


def blame_page(blame: Blame) -> str:
    return page(
        "blame.html",
        f"{blame.function}({blame.arguments})",
        blame=blame,
        passages=passages(_marks(blame)),
        machine=machine(),
    )


def _marks(blame: Blame) -> dict[Place, Mark]:
    """What of the bound each line's equations add, and which lines made a NaN or an infinity."""
    shares: dict[Place, float] = {}
    bound = blame.rounding.bound if blame.rounding else 0.0
    for charge in blame.rounding.charges if blame.rounding and bound else ():
        place = place_of(charge.source)
        if place is not None:
            shares[place] = shares.get(place, 0.0) + charge.error / bound
    marks = {place: Mark(min(share, 1.0)) for place, share in shares.items()}
    for found in blame.nonfinite:
        for made in (found, *found.causes):
            place = place_of(made.source)
            if place is not None:
                marks[place] = Mark(marks.get(place, Mark()).share, str(made).partition(" at ")[0])
    return marks
