"""A problem's derivatives against difference quotients: each leaf of the results by each of the arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

import jax.numpy as jnp
import numpy as np

from ..errors import NotDifferentiable
from ..quotients import (
    OF_DISTRIBUTIONS,
    Direction,
    Mode,
    allowed_error,
    finite_cotangent,
    magnitude,
    widened,
)
from ._check_report import Check, Finding
from ._evaluation import Evaluation, moved
from ._measure import first_line
from ._problem import Arrays, Problem

_NEARBY = (2.0**-6, -(2.0**-6))
"""Points near one at which the function has no derivative: elements are larger or smaller by up to this."""


@dataclass(frozen=True, eq=False)
class Derivative:
    """A problem's derivatives as they can be had. epsilon: the coarsest unit roundoff inside the function."""

    run: Evaluation
    modes: tuple[Mode, ...]
    epsilon: float
    of_distribution: bool


def check_problem(made: Derivative, task: Problem, rtol: float | None, notes: Sequence[str] = ()) -> Check:
    unit = max(float(jnp.finfo(x.dtype).eps) for x in made.run.point)
    allowed = allowed_error(unit) if rtol is None else rtol
    findings = tuple(
        finding for place in range(len(task.active)) for finding in _findings(made, task, place, allowed)
    )
    if made.of_distribution:
        notes = (*notes, "random numbers of a gamma distribution have the derivatives of the distribution")
    precision = "float64" if made.run.double else "as given"
    return Check(task.name, task.arguments(), precision, allowed, findings, notes=tuple(notes))


def best_derivative(task: Problem) -> tuple[Derivative, tuple[str, ...]]:
    """In float64, or as given where there is no derivative in float64."""
    try:
        return derivative_of(task, double=True), ()
    except Exception as reason:
        why = first_line(reason)
    note = f"checked at the precision of the arguments, since the function does not run in float64 ({why})"
    return derivative_of(task, double=False), (note,)


def derivative_of(task: Problem, double: bool) -> Derivative:
    run = Evaluation(task, double)
    run.value(run.point)
    attempts: dict[Mode, Callable[[], Arrays]] = {
        "JVP": lambda: run.jvp(run.point, task.tangents),
        "VJP": lambda: run.vjp(run.point, task.cotangents),
    }
    modes: list[Mode] = []
    for mode, attempt in attempts.items():
        try:
            attempt()
            modes.append(mode)
        except Exception as reason:
            failure = reason
    if not modes:
        raise NotDifferentiable(f"{task.name} has no derivative to check: {first_line(failure)}") from failure
    epsilon, names = run.inside()
    return Derivative(run, tuple(modes), epsilon, not names.isdisjoint(OF_DISTRIBUTIONS))


def _findings(made: Derivative, task: Problem, place: int, rtol: float) -> Iterator[Finding]:
    """Of all results by one leaf of the arguments."""
    argument, results = task.argument_names[place], task.result_names
    at_point = list(_judged(made, task, made.run.point, place, rtol))
    nearby: list[list[Finding]] = []
    if any(f.state == "unclear" for f in at_point):
        rng = np.random.default_rng(place)
        points = [_moved(made.run.point, place, size, rng) for size in _NEARBY]
        nearby = [list(_judged(made, task, point, place, rtol)) for point in points]
    for n, found in enumerate(at_point):
        if found.state == "unclear":
            found = _best([found, *(replace(others[n], nearby=True) for others in nearby)])
        if made.of_distribution and found.state == "wrong":
            found = replace(found, state="unclear")
        yield replace(found, argument=argument, result=results[int(found.result)])


def _best(found: Sequence[Finding]) -> Finding:
    """The one that says most: a derivative that is wrong near a kink is wrong."""
    return next((f for state in ("wrong", "right") for f in found if f.state == state), found[0])


def _moved(point: Arrays, place: int, size: float, rng: np.random.Generator) -> Arrays:
    """The point with the elements of one leaf larger, or smaller, by up to `size` of themselves."""
    x = widened(point[place])
    factors = size * rng.uniform(0.5, 1, x.shape)
    steps = [
        np.where(x == 0, factors * magnitude(x), factors * x) if i == place else 0 * y
        for i, y in enumerate(point)
    ]
    return moved(point, 1.0, steps)


def _judged(made: Derivative, task: Problem, point: Arrays, place: int, rtol: float) -> Iterator[Finding]:
    """The derivatives of all results by one leaf, at a point; results are named by their number."""
    run, epsilon = made.run, made.epsilon
    tangents = [np.zeros_like(v) for v in task.tangents]
    tangents[place] = task.tangents[place]
    value = run.value(point)

    @cache
    def change(h: float) -> list[np.ndarray]:
        return [a - b for a, b in zip(run.value(moved(point, h, tangents)), value, strict=True)]

    scale = magnitude(widened(point[place]))
    direction = Direction(widened(tangents[place]), scale, change, epsilon, rtol)
    pushed = run.jvp(point, tangents) if "JVP" in made.modes else None
    for k, y in enumerate(value):
        cotangents = [np.zeros_like(u) for u in task.cotangents]
        cotangents[k] = finite_cotangent(task.cotangents[k], y)
        pulled = run.vjp(point, cotangents)[place] if "VJP" in made.modes else None
        tangent = None if pushed is None else pushed[k]
        for found in direction.judge(k, y, widened(cotangents[k]), tangent, pulled):
            slope = found.slope
            yield Finding(
                "", str(k), found.mode, found.verdict, found.derivative, slope.slope, slope.uncertainty
            )
