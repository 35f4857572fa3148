"""A Case run in this process: first results, medians side by side, memory, and if the result is right."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import numpy as np

import pybridge as pb
from pybridge.comparison._machine import machine
from pybridge.comparison._timing import interleaved

from .case import OURS, Case
from .results import Measured, Side

__all__ = ["cold", "error", "machine", "measure", "right", "start_julia"]

_ROUNDS, _BUDGET = 41, 12.0  # rounds of timing, and the seconds after which there are no more
_SAMPLE = 0.02  # seconds that a side is called for, one call after the other, before the next side is


def start_julia() -> float:
    """The seconds until Julia has answered for the first time."""
    start = time.perf_counter()
    pb.trace(lambda x: x * x)(1.0).vjp()
    return time.perf_counter() - start


def measure(case: Case, threads: int, quick: bool) -> Measured:
    """All sides of a row. Raises what the rivals raise; what pybridge raises is part of the answer."""
    with jax.enable_x64(case.x64):
        problem = case.make(quick)
        args = jax.device_put(problem.args)
        start_julia()
        compiled = {name: _compile(f, args) for name, f in problem.rivals.items()}
        wanted = right(problem.reference, args)
        try:
            compiled[OURS] = _compile(problem.ours, args)
        except Exception as failure:
            said = f"{type(failure).__name__}: {failure}".splitlines()[0][:300]
            ours = Side(failure=said)
        else:
            ours = replace(compiled[OURS][1], error=error(compiled[OURS][2], wanted))
        calls = [lambda run=run: run(*args) for run, _, _ in compiled.values()]
        rivals = (compiled[name] for name, f in problem.rivals.items() if f is problem.reference)
        _, theirs, result = next(rivals, None) or _compile(problem.reference, args)
        rounds = (3, _BUDGET) if quick else (_ROUNDS, _BUDGET, _SAMPLE)
        seconds = dict(zip(compiled, interleaved(calls, *rounds), strict=True))
    sides = {
        name: replace(compiled[name][1], seconds=seconds[name], error=_comparable(compiled[name][2], wanted))
        for name in problem.rivals
    }
    return Measured(
        case.name,
        threads,
        False,
        replace(ours, seconds=seconds.get(OURS)),
        sides,
        theirs.memory,
        error(result, wanted),
        agrees=ours.error is not None and ours.error <= case.tolerance,
    )


def _compile(f: Callable, args: tuple) -> tuple[Callable, Side, Any]:
    """The jitted function, what its first call took, and that call's result."""
    jitted = jax.jit(f)
    start = time.perf_counter()
    result = jax.block_until_ready(jitted(*args))
    first = time.perf_counter() - start
    return jitted, Side(first=first, memory=memory(jitted, args)), result


def memory(jitted: Callable, args: tuple) -> int:
    """Bytes of results and temporary buffers. A kernel's workspace is a result of XLA's call, and counts."""
    analysis = jitted.lower(*args).compile().memory_analysis()
    return analysis.output_size_in_bytes - analysis.alias_size_in_bytes + analysis.temp_size_in_bytes


def right(reference: Callable, args: tuple) -> Any:
    """JAX's result in float64."""
    with jax.enable_x64(True):
        wide = jax.tree.map(_widened, args)
        return jax.tree.map(np.asarray, jax.jit(reference)(*wide))


def _widened(x: Any) -> np.ndarray:
    array = np.asarray(x)
    return array.astype(np.float64) if array.dtype == np.float32 else array


def _comparable(result: Any, right: Any) -> float | None:
    """The error of a rival, unless it computes something else."""
    return error(result, right) if jax.tree.structure(result) == jax.tree.structure(right) else None


def error(result: Any, right: Any) -> float:
    """The worst leaf's, relative to its largest element; infinite where a result is not finite."""
    leaves = zip(jax.tree.leaves(result), jax.tree.leaves(right), strict=True)
    errors = [_leaf_error(np.asarray(x, np.float64), np.asarray(y)) for x, y in leaves]
    return float(max(errors))


def _leaf_error(x: np.ndarray, y: np.ndarray) -> float:
    if x.shape != y.shape or not np.isfinite(x).all():
        return float("inf")
    return float(np.max(np.abs(x - y)) / max(np.max(np.abs(y)), np.finfo(np.float64).tiny))


def cold(case: Case, side: str, quick: bool) -> list[float]:
    """The result of one side of a row that is about new processes, for its reader to compare."""
    with jax.enable_x64(case.x64):
        return np.asarray(case.cold(side, quick)).tolist()
