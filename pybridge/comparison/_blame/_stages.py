"""A function's value, JVP and VJP as Programs with their arguments: what blame looks into.

The derivatives are JAX's, whose equations have the lines of the equations that they come from.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import jax
import numpy as np

from ...errors import PyBridgeError, TracingError
from ...frontend import keys
from ...frontend.adapter.extend import jaxpr_as_fun
from ...frontend.tracing import trace
from ...ir.program import Program
from .._problem import Problem

Stage = Literal["value", "JVP", "VJP"]


@dataclass(frozen=True, eq=False)
class Run:
    """A Program, what it is called with, and what its inputs and outputs are called."""

    stage: Stage
    program: Program
    arguments: tuple[Any, ...]
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]


@dataclass(frozen=True)
class Missing:
    """A derivative that the function does not have, and why."""

    stage: Stage
    reason: str


def value_run(task: Problem) -> Run:
    """Raises what tracing raises."""
    return _run("value", task, task.flat(task.f), _value, (), (), tuple(task.result_names))


def derivative_runs(task: Problem) -> Iterator[Run | Missing]:
    """From one jaxpr, so that the function's own code runs once."""
    closed = jax.make_jaxpr(task.flat(task.f))(*_arrays(task, ())[:2])
    run = jaxpr_as_fun(closed)

    def flat(*given: Any) -> tuple[Any, ...]:
        return tuple(run(*jax.tree.leaves(given)))

    attempt = functools.partial(_attempt, task, flat)
    results, arguments = task.result_names, task.argument_names
    tangents = tuple(f"tangent of {name}" for name in results)
    along = tuple(f"tangent of {a}" for a in arguments)
    yield attempt("JVP", _jvp, task.tangents, along, tangents)
    cotangents = tuple(f"cotangent of {name}" for name in results)
    yield attempt("VJP", _vjp, task.cotangents, cotangents, tuple(f"VJP by {a}" for a in arguments))


def _value(f: Callable, xs: Sequence[Any]) -> Any:
    return f(*xs)


def _jvp(f: Callable, xs: Sequence[Any], *tangents: Any) -> Any:
    return jax.jvp(f, tuple(xs), tuple(tangents))[1]


def _vjp(f: Callable, xs: Sequence[Any], *cotangents: Any) -> Any:
    return jax.vjp(f, *xs)[1](tuple(cotangents))


def _attempt(task: Problem, flat: Callable, stage: Stage, *parts: Any) -> Run | Missing:
    try:
        return _run(stage, task, flat, *parts)
    except (PyBridgeError, TypeError, ValueError, NotImplementedError) as reason:
        why = reason.__cause__ if isinstance(reason, TracingError) and reason.__cause__ else reason
        return Missing(stage, str(why).partition("\n")[0].rstrip("."))


def _run(
    stage: Stage,
    task: Problem,
    flat: Callable,
    of: Callable,
    directions: Sequence[np.ndarray],
    direction_names: tuple[str, ...],
    output_names: tuple[str, ...],
) -> Run:
    def staged(xs: Any, rest: Any, along: Any) -> Any:
        return of(lambda *active: flat(active, rest), xs, *along)

    arrays = _arrays(task, directions)
    program = trace(staged)(*arrays)
    others = tuple(f"argument {i}" for i in range(len(task.leaves)) if i not in task.active)
    names = (*task.argument_names, *others, *direction_names)
    leaves = tuple(jax.numpy.asarray(keys.raw(x)) for x in jax.tree.leaves(arrays))
    return Run(stage, program, leaves, names, output_names)


def _arrays(task: Problem, directions: Sequence[np.ndarray]) -> Any:
    return jax.tree.map(jax.numpy.asarray, (task.point, task.others, tuple(directions)))
