"""Which combinations of two lists of parameters are tested: `make test` takes some, `make test-all` all."""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from typing import Any

SETTING = "PYBRIDGE_TESTS"
FULL = os.environ.get(SETTING) == "full"
"""Whether everything is tested, however long it takes."""


def covering(
    first: Iterable[Hashable],
    second: Iterable[Hashable],
    allowed: Callable[[Any, Any], bool] = lambda a, b: True,
    least: int = 2,
    full: bool = FULL,
) -> list[tuple[Any, Any]]:
    """Pairs of the two lists in which each value is met `least` times, as far as enough are allowed.

    All allowed pairs with `full`. Each pair is chosen to meet the values that were met least often, so that
    a value is met with different ones; the choice depends on nothing but the arguments.
    """
    pairs = [pair for pair in itertools.product(first, second) if allowed(*pair)]
    if full:
        return pairs
    # The two lists may have equal values: they are told apart by their place.
    possible = Counter(key for pair in pairs for key in enumerate(pair))
    missing = Counter({key: min(least, count) for key, count in possible.items()})
    chosen: list[tuple[Any, Any]] = []
    waiting = list(pairs)
    while waiting and missing.total():
        best = max(waiting, key=lambda pair: _gain(pair, missing, possible))
        waiting.remove(best)
        chosen.append(best)
        for key in enumerate(best):
            missing[key] -= missing[key] > 0
    return sorted(chosen, key=pairs.index)


def _gain(pair: tuple[Any, Any], missing: Counter, possible: Counter) -> tuple[float, float]:
    """How many values it helps, then how rarely these can be met and how often they must."""
    helped = [key for key in enumerate(pair) if missing[key] > 0]
    return len(helped), sum(missing[key] + 1 / possible[key] for key in helped)
