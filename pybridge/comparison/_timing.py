"""Median times of several calls, taken in turns, so that a busy machine slows all of them alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax

_SHORTEST = 1e-3  # seconds
_FEWEST = 3  # rounds, however long they last


def interleaved(calls: Sequence[Callable[[], Any]], rounds: int, budget: float) -> list[float]:
    """The median seconds of each call, taken in turns; see `medians`. Raises what a call raises."""
    return medians([sampler(call) for call in calls], rounds, budget)


def medians(samplers: Sequence[Callable[[], float]], rounds: int, budget: float) -> list[float]:
    """The median of each sampler's samples, taken in turns. Raises what a sampler raises.

    Rounds end early, after three, when `budget` seconds are spent.
    """
    samples: list[list[float]] = [[] for _ in samplers]
    start = time.perf_counter()
    for done in range(rounds):
        if done >= _FEWEST and time.perf_counter() - start > budget:
            break
        for sample, taken in zip(samplers, samples, strict=True):
            taken.append(sample())
    return [statistics.median(taken) for taken in samples]


def sampler(call: Callable[[], Any], shortest: float = _SHORTEST) -> Callable[[], float]:
    """A function that measures the seconds of a call. Calls it twice, and raises what it raises.

    shortest: calls that take fewer seconds are repeated until a sample lasts as long. The first call of a
    sample finds the caches and the thread pool as another function has left them.
    """
    _seconds(call, 1)
    count = max(1, round(shortest / max(_seconds(call, 1), 1e-7)))
    return lambda: _seconds(call, count)


def _seconds(call: Callable[[], Any], count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        jax.block_until_ready(call())
    return (time.perf_counter() - start) / count
