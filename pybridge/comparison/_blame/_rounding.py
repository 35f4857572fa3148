"""What rounding does to a function's results: bounds to first order, by equation, source line and trip."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp
import numpy as np

from ...ir.program import Program
from ...quotients import widened
from .._evaluation import Evaluation
from .._problem import Problem
from ._frames import Frame
from ._nonfinite import equation_text
from ._report import Charge, Rounding
from ._stages import Run
from ._sweep import Charges, Sweep, unit

_PROBES = 8  # elements of the results that are looked at
_MEASURED = 3000  # equations at most of what XLA compiles in both precisions


@np.errstate(all="ignore")  # NaN and infinities are what is looked for
def rounding_of(task: Problem, run: Run, frame: Frame, progress: Callable[[str], None]) -> Rounding | None:
    """Of the element with the largest relative bound among some, evenly spread; None if none is finite."""
    sweep = Sweep()
    found = []
    for leaf, index in probes(run.program):
        progress(f"rounding of {run.output_names[leaf]}{list(index) or ''}")
        found.append((_rounding(sweep, run, frame, leaf, index), leaf))
    bounded = [pair for pair in found if np.isfinite(pair[0].bound)]
    if not bounded:
        return None
    worst, leaf = max(bounded, key=lambda pair: (not pair[0].ok, pair[0].relative))
    worst = replace(worst, uncovered=tuple(sorted(sweep.uncovered)))
    return _measured(task, worst, leaf) if _comparable(run.program) else worst


def probes(program: Program, count: int = _PROBES) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Results and indices in them: at most `count`, evenly spread."""
    places = [
        (k, tuple(map(int, index)))
        for k, type_ in enumerate(program.output_types)
        if type_.inexact
        for index in _spread(type_.shape)
    ]
    if len(places) > count:
        places = [places[i] for i in np.linspace(0, len(places) - 1, count).astype(int)]
    yield from places


def _spread(shape: Any) -> list[tuple[int, ...]]:
    size = int(np.prod(shape))
    flat = np.unique(np.linspace(0, size - 1, min(size, _PROBES)).astype(int)) if size else np.arange(0)
    return [tuple(np.unravel_index(i, shape)) for i in flat]


def _rounding(sweep: Sweep, run: Run, frame: Frame, leaf: int, index: tuple[int, ...]) -> Rounding:
    program = run.program
    result = frame.read(program.outputs[leaf])
    cotangents: list[Any] = [None] * len(program.outputs)
    cotangents[leaf] = jnp.zeros_like(result).at[index].set(1)
    exact = [True] * len(program.inputs)
    inputs, charges = sweep.back(program, frame.values, cotangents, exact, True)
    found = sorted(_charges(program, charges, ()), key=lambda c: -c.error)
    types = program.input_types
    by_arguments = sum(
        unit(t.dtype) * float(np.nansum(abs(widened(ct)) * abs(widened(x))))
        for t, ct, x in zip(types, inputs, run.arguments, strict=True)
        if ct is not None
    )
    value = widened(result)
    dtype = program.output_types[leaf].dtype
    largest = float(np.max(abs(value)))
    return Rounding(
        run.output_names[leaf],
        index,
        float(value[index].real),
        largest,
        unit(dtype),
        sum(c.error for c in found),
        by_arguments,
        tuple(found),
    )


@dataclass(frozen=True)
class _Around:
    """A loop or branch around a body."""

    name: str
    loop: bool


def _charges(program: Program, charges: Sequence[Charges], around: tuple[_Around, ...]) -> Iterator[Charge]:
    for k, (eq, charge) in enumerate(zip(program.equations, charges, strict=True)):
        if charge is None:
            continue
        if not isinstance(charge, list):
            array = np.asarray(charge, np.float64)
            if np.any(array[..., 0] != 0) or np.any(array[..., 1] != 0):
                yield _charge(eq, k, array, around)
            continue
        bodies = _bodies(eq)
        for i, (body, inner) in enumerate(zip(bodies, charge, strict=True)):
            if inner is not None:
                yield from _charges(body, inner, (*around, *_around(eq.op, i)))


def _bodies(eq: Any) -> Sequence[Program]:
    if eq.op == "cond":
        return eq.attrs["branches"]
    name = {"scan": "body", "while": "body", "remat": "body", "custom_linear_solve": "solve"}
    return [eq.attrs[name.get(eq.op, "call")]]


def _around(op: str, i: int) -> tuple[_Around, ...]:
    if op == "cond":
        return (_Around(f"branch {i}", False),)
    return (_Around("trip", True),) if op in ("scan", "while") else ()


def _charge(eq: Any, k: int, array: np.ndarray, around: tuple[_Around, ...]) -> Charge:
    own, inherited, kept = (array[..., i] for i in range(3))
    by = inherited if inherited.sum() > own.sum() else own
    worst = np.unravel_index(int(np.argmax(np.nan_to_num(by, nan=np.inf))), by.shape)
    trips = iter(worst)
    place = tuple(f"trip {int(next(trips))}" if a.loop else a.name for a in around)
    condition = None
    if inherited.sum() > 0:
        condition = float(inherited[worst] / kept[worst]) if kept[worst] else float("inf")
    return Charge(
        eq.op, equation_text(eq), eq.source, k, place, float(own.sum()), condition, float(inherited.sum())
    )


def _comparable(program: Program) -> bool:
    """Whether both precisions compute the same, as random numbers do not, and XLA compiles it in seconds."""
    return program.equation_count() <= _MEASURED and not _has_bits(program)


def _has_bits(program: Program) -> bool:
    return any(
        eq.op in ("bitcast_convert_type", "threefry2x32") or any(map(_has_bits, eq.running_bodies))
        for eq in program.equations
    )


def _measured(task: Problem, found: Rounding, leaf: int) -> Rounding:
    """With the error of a run: at the function's precision against float64, else in float32."""
    wide, narrow = np.dtype(np.float64), np.dtype(np.float32)
    double = all(x.dtype in (wide, np.complex128) for x in map(jnp.asarray, task.point))
    try:
        exact = Evaluation(task, True)
        if exact.result_dtypes[leaf] not in (wide, np.complex128):
            return found
        reference = exact.value(exact.point)[leaf]
        coarse = found.bound
        if double:
            given = [np.asarray(x).astype(np.complex64 if np.iscomplexobj(x) else narrow) for x in task.point]
            if any(not np.array_equal(a, b) for a, b in zip(given, task.point, strict=True)):
                reference = exact.value(list(map(widened, given)))[leaf]
            other = Evaluation(replace(task, args=(), leaves=_with(task, given)), False)
            if other.result_dtypes[leaf] not in (narrow, np.complex64):
                return found
            ours, coarse = other.value(other.point)[leaf], found.bound * 2.0**29
        else:
            own = Evaluation(task, False)
            ours = own.value(own.point)[leaf]
    except Exception:  # the function is of one precision alone
        return found
    error = float(abs(ours - reference)[found.index])
    return replace(found, measured=error, coarse_bound=coarse)


def _with(task: Problem, active: Sequence[Any]) -> tuple[Any, ...]:
    chosen = dict(zip(task.active, active, strict=True))
    return tuple(chosen.get(i, x) for i, x in enumerate(task.leaves))
