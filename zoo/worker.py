"""A problem in this process: `python -m zoo.worker NAME FILE` writes what is known so far to FILE, as JSON.

With `--untimed`, results are compared and no call is timed after the first.
A process that dies or hangs leaves what it had found until then. Tracebacks go to stderr.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import pybridge as pb
from pybridge.comparison._machine import machine

from .problem import Problem
from .results import Derivative, Result
from .table import named

_BUDGET = 2.0  # seconds of timing for each derivative
_UNENDED = "its first call did not end"
_FEWEST, _MOST = 3, 200  # rounds of timing


def derivatives(loss: Callable, args: tuple) -> Iterator[tuple[str, Callable]]:
    """Functions of the arguments: the value, the gradient, and the Hessian along a fixed direction."""
    direction = _direction(args[0])

    def gradient(params, *rest):
        return jax.grad(loss)(params, *rest)

    def hvp(params, *rest):
        return jax.jvp(lambda p: gradient(p, *rest), (params,), (direction,))[1]

    yield from (("value", loss), ("gradient", gradient), ("hvp", hvp))


def _direction(params: Any) -> Any:
    random = np.random.default_rng(0)
    return jax.tree.map(
        lambda x: jnp.asarray(random.standard_normal(np.shape(x)), jnp.result_type(x)), params
    )


def run(problem: Problem, save: Callable[[Result], None], *, timed: bool = True) -> Result:
    result = Result(problem.name, importlib.metadata.version(problem.distribution), jax.__version__)
    save(result)
    pb.trace(lambda x: x * x)(1.0).vjp()  # Julia is started before anything is timed
    result = replace(result, machine=machine())
    with jax.enable_x64(problem.x64):
        try:
            loss, args = problem.make()
        except Exception as failure:
            result = replace(result, failure=f"JAX by itself: {_said(failure)}")
            save(result)
            return result
        args = jax.device_put(args)
        for name, known in _compared(problem, loss, args, timed):
            result = result.with_derivative(name, known)
            save(result)
    return result


def _compared(problem: Problem, loss: Callable, args: tuple, timed: bool) -> Iterator[tuple[str, Derivative]]:
    """What is known of each derivative, step by step."""
    ours = dict(derivatives(pb.bridge(loss), args))
    for name, theirs in derivatives(loss, args):
        known = Derivative()
        for known in _measured(theirs, ours[name], args, problem.tolerance, name in problem.absent, timed):
            yield name, known
        if name == "hvp" and problem.hvp_of and known.jax_failure:
            other = dict(derivatives(problem.make_other(), args))[name]
            for alone in _measured(other, ours[name], args, problem.tolerance, False, timed):
                yield name, replace(alone, jax_failure=known.jax_failure, jax_first=None, jax_seconds=None)


def _measured(
    theirs: Callable, ours: Callable, args: tuple, tolerance: float, absent: bool, timed: bool
) -> Iterator[Derivative]:
    """What is known before each step that might not end, and at last. absent: JAX is expected to refuse."""
    yield Derivative(jax_failure=_UNENDED)
    try:
        jax_run, jax_first, right = _first(theirs, args)
    except Exception as failure:
        yield Derivative(jax_failure=_said(failure, loud=not absent))
        return
    if not _finite(right):
        yield Derivative(jax_failure="the result is not finite")
        return
    if absent:
        yield Derivative(jax_first=jax_first)
        return
    yield Derivative(failure=_UNENDED, jax_first=jax_first)
    try:
        run, first, got = _first(ours, args)
    except Exception as failure:
        yield Derivative(failure=_said(failure), jax_first=jax_first)
        return
    wrong = error(got, right)
    compared = Derivative(error=wrong, agrees=wrong <= tolerance, first=first, jax_first=jax_first)
    if timed:
        seconds, jax_seconds = _least([lambda: run(*args), lambda: jax_run(*args)])
        compared = replace(compared, seconds=seconds, jax_seconds=jax_seconds)
    yield compared


def _first(f: Callable, args: tuple) -> tuple[Callable, float, Any]:
    """The jitted function, the seconds of its first call, and that call's result."""
    jitted = jax.jit(f)
    start = time.perf_counter()
    result = jax.block_until_ready(jitted(*args))
    return jitted, time.perf_counter() - start, result


def _least(calls: list[Callable[[], Any]]) -> list[float]:
    """The least seconds of each call, taken in turns."""
    least = [float("inf")] * len(calls)
    begin = time.perf_counter()
    for done in range(_MOST):
        if done >= _FEWEST and time.perf_counter() - begin > _BUDGET:
            break
        for i, call in enumerate(calls):
            start = time.perf_counter()
            jax.block_until_ready(call())
            least[i] = min(least[i], time.perf_counter() - start)
    return least


def _finite(tree: Any) -> bool:
    return all(np.isfinite(np.asarray(x)).all() for x in jax.tree.leaves(tree))


def error(got: Any, right: Any) -> float:
    """The worst leaf's, relative to its largest element; infinite where shapes or finiteness differ.

    A leaf that is nothing but rounding compared with the others, such as the gradient by the bias of an
    attention's keys, counts relative to those.
    """
    if jax.tree.structure(got) != jax.tree.structure(right):
        return float("inf")
    pairs = [
        (np.asarray(x), np.asarray(y))
        for x, y in zip(jax.tree.leaves(got), jax.tree.leaves(right), strict=True)
    ]
    largest = max((np.max(np.abs(y), initial=0.0) for _, y in pairs), default=0.0)
    return max((_leaf_error(x, y, largest) for x, y in pairs), default=0.0)


def _leaf_error(x: np.ndarray, y: np.ndarray, largest: float) -> float:
    floor = largest * (1e-3 if y.dtype.itemsize <= 4 else 1e-6) or np.finfo(np.float64).tiny
    if x.shape != y.shape or x.dtype != y.dtype or not np.isfinite(x).all():
        return float("inf")
    return float(np.max(np.abs(x - y), initial=0.0) / max(np.max(np.abs(y), initial=0.0), floor))


def _said(failure: Exception, loud: bool = True) -> str:
    if loud:
        traceback.print_exception(failure, file=sys.stderr)
    lines = str(failure).strip().splitlines()
    return f"{type(failure).__name__}: {lines[0] if lines else ''}"[:300]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("file", type=Path)
    parser.add_argument("--untimed", action="store_true")
    given = parser.parse_args()

    def save(result: Result) -> None:
        given.file.write_text(json.dumps(asdict(result)))

    result = run(named(given.name), save, timed=not given.untimed)
    print(json.dumps(asdict(result), indent=1))


if __name__ == "__main__":
    main()
