"""A function and the same in mixed precision, run side by side: the errors themselves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from ...frontend import emission
from ...ir.program import Program
from ...quotients import widened

_AROUND = 1e-3  # relative, by element: how far arguments around the example's are from them


@dataclass(frozen=True)
class Tolerance:
    """error: relative to the largest magnitude in a result; absolute: allowed in addition."""

    error: float
    absolute: float

    def allowed(self, magnitude: float) -> float:
        return self.error * magnitude + self.absolute


@dataclass(frozen=True)
class Errors:
    """relative: the largest, to the largest magnitude in the result. part: of what is allowed."""

    relative: float
    part: float


@dataclass(frozen=True, eq=False)
class Trial:
    """At one point: the results in 64 bits are the reference."""

    arguments: Sequence[Any]
    reference: Sequence[np.ndarray]

    @property
    def finite(self) -> bool:
        return all(np.isfinite(y).all() for y in self.reference)

    def errors(self, program: Program, tolerance: Tolerance) -> Errors:
        relative = part = 0.0
        for y, exact in zip(results(program, self.arguments), self.reference, strict=True):
            error, magnitude = _distance(y, exact), largest(exact)
            if error > 0:
                relative = max(relative, error / magnitude if magnitude else np.inf)
                allowed = tolerance.allowed(magnitude)
                part = max(part, error / allowed if allowed else np.inf)
        return Errors(relative, part)


def trials_around(program: Program, arguments: Sequence[Any], seed: int, count: int) -> Iterator[Trial]:
    """At `count` points around the arguments, where all results are finite there."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        point = [_near(rng, x) for x in arguments]
        trial = Trial(point, results(program, point))
        if trial.finite:
            yield trial


def results(program: Program, arguments: Sequence[Any]) -> list[np.ndarray]:
    """The float and complex ones, in float64."""
    return of_floats(program, emission.to_jax(program)(*arguments))


def of_floats(program: Program, ys: Sequence[Any]) -> list[np.ndarray]:
    return [widened(y) for y, t in zip(ys, program.output_types, strict=True) if t.inexact]


def largest(y: np.ndarray) -> float:
    """Among the finite ones."""
    finite = abs(y[np.isfinite(y)])
    return float(np.max(finite)) if finite.size else 0.0


def _distance(y: np.ndarray, exact: np.ndarray) -> float:
    """Infinite where one is NaN or infinite and the other is not so."""
    usual = np.isfinite(exact) & np.isfinite(y)
    if not np.array_equal(y[~usual], exact[~usual], equal_nan=True):
        return np.inf
    apart = abs(y[usual] - exact[usual])
    return float(np.max(apart)) if apart.size else 0.0


def _near(rng: np.random.Generator, x: Any) -> Any:
    if not jnp.issubdtype(jnp.result_type(x), jnp.floating):
        return x
    x = np.asarray(x)
    return jnp.asarray((x * (1 + _AROUND * rng.uniform(-1, 1, x.shape))).astype(x.dtype))
