"""Sides of a Case in this process: first results, samples of the time, memory, and if results are right."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

import pybridge as pb
from pybridge.comparison._machine import machine
from pybridge.comparison._timing import medians, sampler
from pybridge.runtime import native

from .case import OURS, Case
from .results import Measured, Side

__all__ = [
    "Prepared",
    "Right",
    "assembled",
    "cold",
    "error",
    "in_float64",
    "load_right",
    "machine",
    "measure",
    "prepared",
    "right",
    "rounds",
    "start_julia",
]

_ROUNDS, _BUDGET = 41, 12.0  # rounds of samples, and the seconds after which there are no more
_SAMPLE = 0.02  # seconds that a side is called for, one call after the other, before the next side is


@dataclass(frozen=True)
class Prepared:
    """A compiled side of a row. result: a tree of arrays; sample: measures the seconds of a call."""

    side: Side
    result: Any
    sample: Callable[[], float]

    def error(self, wanted: Any) -> float | None:
        """Against that tree, unless this side computes something else."""
        same = jax.tree.structure(self.result) == jax.tree.structure(wanted)
        return error(self.result, wanted) if same else None


@dataclass(frozen=True)
class Right:
    """JAX's result in float64, and the memory and the error of JAX's own, in the program's dtypes."""

    result: Any
    memory: int
    error: float

    def save(self, path: Path) -> None:
        path.write_bytes(pickle.dumps(self))


def load_right(path: Path) -> Right:
    """What another process saved."""
    return pickle.loads(path.read_bytes())


def start_julia() -> float:
    """The seconds until Julia has answered for the first time."""
    start = time.perf_counter()
    pb.trace(lambda x: x * x)(1.0).vjp()
    return time.perf_counter() - start


def rounds(quick: bool) -> tuple[int, float]:
    """How many there are at most, and the seconds after which there are no more."""
    return (3 if quick else _ROUNDS), _BUDGET


def measure(case: Case, threads: int, quick: bool) -> Measured:
    """All sides of a row, in this process. Raises what a side raises."""
    with jax.enable_x64(case.x64):
        wanted = right(case, quick)
        sides = {name: prepared(case, name, quick) for name in (*case.rivals, OURS)}
        seconds = medians([one.sample for one in sides.values()], *rounds(quick))
    found = {
        name: replace(one.side, seconds=taken, error=one.error(wanted.result))
        for (name, one), taken in zip(sides.items(), seconds, strict=True)
    }
    return assembled(case, threads, found.pop(OURS), found, wanted)


def assembled(case: Case, threads: int, ours: Side, rivals: Mapping[str, Side], wanted: Right) -> Measured:
    """The row of these sides."""
    agrees = ours.error is not None and ours.error <= case.tolerance
    return Measured(case.name, threads, False, ours, rivals, wanted.memory, wanted.error, agrees)


def prepared(case: Case, name: str, quick: bool) -> Prepared:
    """pybridge or a rival, compiled; to be run where JAX's x64 is the row's. Raises what it raises."""
    problem = case.make(quick)
    if name == OURS:
        start_julia()
    args = jax.device_put(problem.args)
    jitted, side, result = _compiled(problem.ours if name == OURS else problem.rivals[name], args)
    return Prepared(side, result, sampler(lambda: jitted(*args), *(() if quick else (_SAMPLE,))))


def right(case: Case, quick: bool) -> Right:
    """What the sides of a row are compared with; to be run where JAX's x64 is the row's."""
    problem = case.make(quick)
    _, side, result = _compiled(problem.reference, jax.device_put(problem.args))
    wanted = in_float64(problem.reference, problem.args)
    assert side.memory is not None
    return Right(wanted, side.memory, error(result, wanted))


def _compiled(f: Callable, args: tuple) -> tuple[Callable, Side, Any]:
    """The jitted function, what its first call took and takes, and that call's result."""
    jitted = jax.jit(f)
    start = time.perf_counter()
    result = jax.block_until_ready(jitted(*args))
    first = time.perf_counter() - start
    return jitted, Side(first=first, memory=native.memory(jitted.lower(*args).compile())), result


def in_float64(reference: Callable, args: tuple) -> Any:
    """JAX's result, computed in float64."""
    with jax.enable_x64(True):
        wide = jax.tree.map(_widened, args)
        return jax.tree.map(np.asarray, jax.jit(reference)(*wide))


def _widened(x: Any) -> np.ndarray:
    array = np.asarray(x)
    return array.astype(np.float64) if array.dtype == np.float32 else array


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
