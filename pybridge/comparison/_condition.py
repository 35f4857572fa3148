"""The function's own condition: what rounding its inputs, once and at random, does to what it gives.

Statistical condition estimation (Kenney and Laub, SIAM J. Sci. Comput. 15, 1994): each active input is
changed by the same small part of itself, with random signs, and the changes of the results are measured in
float64. An engine whose error is about one unit of condition times roundoff is as accurate as its inputs let
it be.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..quotients import widened
from . import _numbers
from ._evaluation import moved
from ._problem import Arrays, Problem
from ._reference import Exact

_DRAWS = 3

Function = Callable[[Sequence[np.ndarray]], Arrays]
"""Of the active leaves."""


@dataclass(frozen=True, eq=False)
class Condition:
    """Of the reference's value, JVP and VJP, at the comparison's directions."""

    task: Problem
    exact: Exact

    def units(self, stage: str) -> list[float]:
        """For each array the absolute error that is one unit of condition times roundoff."""
        return [size * self.task.epsilon for size in self._sensitivities[stage]]

    def by_leaf(self) -> dict[str, dict[str, float]]:
        """By how much random relative changes of the inputs are magnified; at least 1."""
        found: dict[str, dict[str, float]] = {}
        for stage, sizes in self._sensitivities.items():
            leaves = zip(self.task.leaf_names(stage), sizes, self._expected[stage], strict=True)
            found[stage] = {n: _numbers.ratio(size, _numbers.largest_finite(y)) for n, size, y in leaves}
        return found

    @cached_property
    def _expected(self) -> dict[str, Arrays]:
        return {stage: y for stage, y in self.exact.by_stage.items() if y is not None}

    @cached_property
    def _sensitivities(self) -> dict[str, list[float]]:
        task, run = self.task, self.exact.run
        functions: dict[str, Function] = {
            "value": run.value,
            "jvp": lambda point: run.jvp(point, task.tangents),
            "vjp": lambda point: run.vjp(point, task.cotangents),
        }
        return {s: sensitivities(functions[s], self.exact, y) for s, y in self._expected.items()}


def sensitivities(f: Function, exact: Exact, expected: Arrays) -> list[float]:
    """For each result the largest change of an element per relative change of the inputs, in the median draw.

    At least the largest magnitude in the result itself, which its own rounding changes by a part of it.
    f: a function that the reference `exact` evaluates. expected: its results at the reference's point.
    """
    rng, step, point = np.random.default_rng(0), math.sqrt(exact.epsilon), exact.run.point
    draws = [f(moved(point, step, [widened(x) * _signs(rng, x) for x in point])) for _ in range(_DRAWS)]
    found = []
    for y, *nearby in zip(expected, *draws, strict=True):
        change = statistics.median(_numbers.largest_difference(y, near) for near in nearby)
        found.append(max(change / step, _numbers.largest_finite(y)))
    return found


def _signs(rng: np.random.Generator, like: np.ndarray) -> np.ndarray:
    """Random signs, for complex numbers phases."""
    if like.dtype.kind == "c":
        return np.exp(2j * np.pi * rng.random(like.shape))
    return rng.choice([-1.0, 1.0], like.shape)
