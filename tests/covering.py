"""Which combinations of two lists of parameters are tested: `make test` takes some, `make test-all` all.

The oldest pair of Python and JAX tests each value once: the newest tests it with several others.
"""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeVar

T = TypeVar("T")

SETTING = "PYBRIDGE_TESTS"
FULL = os.environ.get(SETTING) == "full"
"""Whether everything is tested, however long it takes."""
ONCE = os.environ.get(SETTING) == "once"
"""Whether each value is tested with one other only, and each test with few sets of parameters."""


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
    missing = Counter({key: min(1 if ONCE else least, count) for key, count in possible.items()})
    met: Counter = Counter()
    chosen: list[tuple[Any, Any]] = []
    waiting = list(pairs)
    while waiting and missing.total():
        best = max(waiting, key=lambda pair: _gain(pair, missing, possible, met))
        waiting.remove(best)
        chosen.append(best)
        for key in enumerate(best):
            missing[key] -= missing[key] > 0
            met[key] += 1
    return sorted(chosen, key=pairs.index)


def cover(pairs: Iterable[tuple[Any, Any]], least: int = 1, full: bool = FULL) -> list[tuple[Any, Any]]:
    """`covering` of what stands first and second in these pairs, by pairs that are among them."""
    there = dict.fromkeys(pairs)
    return covering(*map(dict.fromkeys, zip(*there, strict=True)), lambda *p: p in there, least, full)


def some(values: Iterable[T], n: int, full: bool = FULL) -> list[T]:
    """So many of the values, evenly spread. All with `full`."""
    values = list(values)
    n = len(values) if full else min(n, len(values))
    return [values[k * len(values) // n] for k in range(n)]


def in_turn(groups: Iterable[Sequence[T]], n: int = 1, full: bool = FULL) -> list[T]:
    """Of each group `n` values, evenly spread from one that differs from group to group.

    One for the oldest pair, and all with `full`.
    """
    n = 1 if ONCE else n
    chosen: list[T] = []
    for turn, group in enumerate(groups):
        size = len(group)
        places = range(size) if full else sorted({(turn + k * size // n) % size for k in range(n)})
        chosen += [group[place] for place in places]
    return chosen


def _gain(pair: tuple[Any, Any], missing: Counter, possible: Counter, met: Counter) -> tuple[float, ...]:
    """How many values it helps, how seldom they were met, and how few pairs they are in or how often due."""
    helped = [key for key in enumerate(pair) if missing[key] > 0]
    rare = sum(missing[key] + 1 / possible[key] for key in helped)
    return len(helped), -sum(met[key] for key in enumerate(pair)), rare
