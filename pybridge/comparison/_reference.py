"""The reference: JAX in float64 at the very numbers that the engines get, and the function along a line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ..quotients import OF_DISTRIBUTIONS
from . import _numbers
from ._evaluation import Evaluation
from ._measure import first_line
from ._problem import Arrays, Problem

_DOUBLE = {np.dtype(np.float64), np.dtype(np.complex128)}


@dataclass(frozen=True, eq=False)
class Exact:
    """value, jvp and vjp in float64; a derivative that JAX lacks is None, and `notes` says why.

    along: h -> f(x + hv) for the problem's direction v.
    epsilon: the coarsest unit roundoff that the function computes with.
    run: what these come from.
    of_distribution: the derivatives are not of the value, but of the distribution that it is drawn from.
    """

    value: Arrays
    jvp: Arrays | None
    vjp: Arrays | None
    along: Callable[[float], Arrays]
    precision: str
    epsilon: float
    of_distribution: bool
    run: Evaluation
    notes: tuple[str, ...] = ()

    @property
    def by_stage(self) -> dict[str, Arrays | None]:
        return {"value": self.value, "jvp": self.jvp, "vjp": self.vjp}


def exact(problem: Problem) -> Exact:
    """Falls back on the inputs' own precision, with a note, where the function refuses float64.

    Raises what the function raises at that precision.
    """
    try:
        return _evaluate(problem, Evaluation(problem, double=True))
    except Exception as reason:
        why = first_line(reason)
        note = f"the function does not run in float64 ({why}); the reference has its own precision"
        return _evaluate(problem, Evaluation(problem, double=False), note)


def by_operation(problem: Problem, whole: Exact) -> Exact | None:
    """The reference with each operation compiled for itself, where XLA makes something else of the whole.

    None where it does not, or the function is no Program. Rounding that the function magnifies is told
    apart by points near this one, at which the whole would differ as much.
    """
    try:
        run = Evaluation(problem, double=whole.precision == "float64", whole=False)
        apart = _evaluate(problem, run)
    except Exception:
        return None
    nearby = [whole.along(h) for h in _NEARBY]
    noise = max(_apart(whole.value, value) for value in nearby)
    found = {
        stage: _apart(getattr(whole, stage), getattr(apart, stage))
        for stage in ("value", "jvp", "vjp")
        if getattr(whole, stage) is not None and getattr(apart, stage) is not None
    }
    off = [
        f"{stage if stage == 'value' else stage.upper()} ({difference:.1e})"
        for stage, difference in found.items()
        if difference > max(_FAR, 1e3 * noise)
    ]
    note = (
        f"the {', '.join(off)} of JAX under jit is not that of JAX one operation at a time, which is the "
        "reference here: XLA seems to have compiled the function wrongly"
    )
    return replace(apart, notes=(*whole.notes, note)) if off else None


_NEARBY = (2.0**-48, -(2.0**-48))
_FAR = 1e-6


def _apart(ours: Arrays, theirs: Arrays) -> float:
    """The largest relative difference; infinite where elements of one of the two are not finite."""
    found = _numbers.error(ours, theirs)
    return float("inf") if found.misplaced else found.relative


def _evaluate(problem: Problem, run: Evaluation, *notes: str) -> Exact:
    value = run.value(run.point)
    jvp, no_jvp = _attempt("JVP", lambda: run.jvp(run.point, problem.tangents))
    vjp, no_vjp = _attempt("VJP", lambda: run.vjp(run.point, problem.cotangents))
    narrow = sorted({str(dtype) for dtype in run.result_dtypes if dtype not in _DOUBLE}) if run.double else []
    own = [f"the function itself returns {', '.join(narrow)} for float64 inputs"] if narrow else []

    def along(h: float) -> Arrays:
        return run.moved(h, problem.tangents)

    precision = "float64" if run.double else "as given"
    epsilon, primitives = run.inside()
    of_distribution = not primitives.isdisjoint(OF_DISTRIBUTIONS)
    remarks = (*notes, *own, *no_jvp, *no_vjp)
    return Exact(value, jvp, vjp, along, precision, epsilon, of_distribution, run, remarks)


def _attempt(name: str, derive: Callable[[], Arrays]) -> tuple[Arrays | None, list[str]]:
    try:
        return derive(), []
    except Exception as reason:
        return None, [f"JAX has no {name} of the function: {first_line(reason)}"]
