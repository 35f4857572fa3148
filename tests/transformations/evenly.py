"""Covers of two lists of which one is much longer."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any

from covering import covering


def evenly(
    many: Iterable[Hashable],
    few: Iterable[Hashable],
    allowed: Callable[[Any, Any], bool] = lambda a, b: True,
    least: int = 2,
) -> list[tuple[Any, Any]]:
    """Pairs as `covering` takes them, of parts of the longer list that are about as long as the shorter one.

    Of the whole list it takes most values with the first of the few.
    """
    many, few = list(many), list(few)
    parts = max(1, len(many) // len(few))
    return [pair for k in range(parts) for pair in covering(many[k::parts], few, allowed, least)]
