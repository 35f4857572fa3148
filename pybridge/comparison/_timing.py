"""Median times of several calls, taken in turns, so that a busy machine slows all of them alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax

_SHORTEST = 1e-3  # seconds
_FEWEST = 3  # rounds, however long they last


def interleaved(
    calls: Sequence[Callable[[], Any]], rounds: int, budget: float, shortest: float = _SHORTEST
) -> list[float]:
    """The median seconds of each call. Rounds end early, after three, when `budget` seconds are spent.

    shortest: calls that take fewer seconds are repeated until a sample lasts as long. The first call of a
    sample finds the caches and the thread pool as another function has left them.

    Raises what a call raises.
    """
    loops = [_loops(call, shortest) for call in calls]
    samples: list[list[float]] = [[] for _ in calls]
    start = time.perf_counter()
    for done in range(rounds):
        if done >= _FEWEST and time.perf_counter() - start > budget:
            break
        for call, count, taken in zip(calls, loops, samples, strict=True):
            taken.append(_seconds(call, count))
    return [statistics.median(taken) for taken in samples]


def _loops(call: Callable[[], Any], shortest: float) -> int:
    _seconds(call, 1)
    return max(1, round(shortest / max(_seconds(call, 1), 1e-7)))


def _seconds(call: Callable[[], Any], count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        jax.block_until_ready(call())
    return (time.perf_counter() - start) / count
