"""One engine's numbers: its first gradient, timed, then value and JVP, each of which may fail alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import jax

from ..errors import ArgumentError
from ..quotients import widened
from ._memory import Jitted, memory
from ._nestings import NESTINGS, Nesting, hessian_product
from ._problem import Arrays, Problem
from ._rows import Memory

Stage = Literal["vjp", "value", "jvp"] | Nesting
_STAGES: tuple[Stage, ...] = ("vjp", "value", "jvp")  # the gradient first, so that nothing is warm


def stages_of(order: int) -> tuple[Stage, ...]:
    """What there is to measure, up to that order of derivatives."""
    return (*_STAGES, *NESTINGS) if order == 2 else _STAGES


@dataclass(frozen=True, eq=False)
class Measured:
    """results and failures (an exception's kind and first line): by stage. calls: what can be timed.

    The results of a nesting are Hv and Hw, with v the problem's tangents and w its others.
    memory: of the VJP, where there is one.
    """

    results: Mapping[str, Arrays] = field(default_factory=dict)
    failures: Mapping[str, str] = field(default_factory=dict)
    first_gradient: float | None = None
    calls: Mapping[str, Callable[[], Any]] = field(default_factory=dict)
    memory: Memory | None = None


@dataclass(frozen=True, eq=False)
class Candidate:
    """A function like the problem's with derivatives of its own making, under the name that its row bears."""

    name: str
    function: Callable
    warm_up: Callable[[], Any] = lambda: None


def measure(
    candidate: Candidate,
    problem: Problem,
    stage_done: Callable[[Stage, Measured], None] = lambda *_: None,
    order: int = 1,
) -> Measured:
    """Runs every stage. Exceptions are recorded, not raised."""
    results: dict[str, Arrays] = {}
    failures: dict[str, str] = {}
    calls: dict[str, Callable[[], Any]] = {}
    expected = {"vjp": problem.tangents, "value": problem.cotangents, "jvp": problem.cotangents}
    expected |= dict.fromkeys(NESTINGS, (*problem.tangents, *problem.tangents))
    first = None
    _quietly(candidate.warm_up)  # starting Julia is no part of a function's first gradient
    for stage in stages_of(order):
        start = time.perf_counter()
        try:
            calls[stage] = thunk(stage, candidate.function, problem)
            found = jax.block_until_ready(calls[stage]())
            if stage == "vjp":
                first = time.perf_counter() - start
            results[stage] = _fitting(tuple(map(widened, found)), expected[stage])
        except Exception as problem_found:  # whatever an engine raises is its row's content
            failures[stage] = first_line(problem_found)
            calls.pop(stage, None)
        stage_done(stage, Measured(results, failures, first))
    vjp = calls.get("vjp")
    taken = memory(problem.flat(candidate.function), vjp) if isinstance(vjp, Jitted) else None
    return Measured(results, failures, first, calls, taken)


def _fitting(found: Arrays, like: Arrays) -> Arrays:
    """Raises ArgumentError for results of other shapes than the function's."""
    shapes, wanted = ([a.shape for a in arrays] for arrays in (found, like))
    if shapes != wanted:
        raise ArgumentError(f"the results have shapes {shapes}, the function's have {wanted}")
    return found


def thunk(stage: Stage, g: Callable, problem: Problem) -> Callable[[], tuple]:
    """A jitted call of that stage on arrays that are on the device already."""
    flat = problem.flat(g)
    given = problem.point, problem.others, problem.tangents, problem.cotangents, problem.other_tangents
    point, others, tangents, cotangents, more = jax.tree.map(jax.numpy.asarray, given)

    def value(xs, rest):
        return flat(xs, rest)

    def jvp(xs, rest, vs):
        return jax.jvp(lambda *active: flat(active, rest), xs, vs)[1]

    def vjp(xs, rest, us):
        return jax.vjp(lambda *active: flat(active, rest), *xs)[1](us)

    if stage in NESTINGS:
        product = jax.jit(hessian_product(stage, flat))
        return lambda: tuple(y for v in (tangents, more) for y in product(point, others, cotangents, v))
    choices = {"value": (value, ()), "jvp": (jvp, (tangents,)), "vjp": (vjp, (cotangents,))}
    function, directions = choices[stage]
    return Jitted(jax.jit(function), (point, others, *directions))


def is_absent(stage: str, reason: str) -> bool:
    """Whether a derivative does not exist, by JAX's own words: custom_vjp functions have no JVP."""
    words = {"jvp": ("custom_vjp function",), "reverse over forward": ("custom_vjp function", "custom_lin")}
    return any(word in reason for word in words.get(stage, ()))


def first_line(error: BaseException) -> str:
    """An exception's kind and the first line of what it says."""
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0][:300]}" if text else type(error).__name__


def _quietly(action: Callable[[], Any]) -> None:
    try:
        action()
    except Exception:  # the stages will meet the same and record it
        return
