"""Where two engines part: the first equation of a Program at which a derivative differs from JAX's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import jax
import jax.numpy as jnp

from ..frontend.tracing import trace
from ..ir.program import Equation, Program
from . import _numbers
from ._derivative_check import best_derivative
from ._engines import candidate
from ._measure import first_line, thunk
from ._problem import Problem, problem, widened
from ._rows import Error, Row, described, tolerance
from ._wrong_rules import blamed

Mode = Literal["value", "jvp", "vjp"]


@dataclass(frozen=True)
class Disagreement:
    """index, equation, source: which equation of the function's Program, and the user's line.

    Of a candidate there are no equations: `equation` is empty, and `source` is its rule that is wrong, where
    one is.

    mode: "jvp" where the equation's tangent differs; "vjp" where only the cotangents differ that come back
        through the equations up to it; "value" of a candidate.
    leaf: of a candidate, the argument (of a VJP) or the result that is off.
    error: the largest relative difference from JAX, or None where the engine failed; then `reason` says how.
    """

    index: int | None
    equation: str
    source: str
    mode: Mode
    error: float | None
    reason: str = ""
    leaf: str = ""

    def __str__(self) -> str:
        found = self.reason or f"relative difference {self.error:.1e}"
        at = f" at {self.source}" if self.source else ""
        if not self.equation:
            return f"{described(self.mode, self.leaf)}{at} ({found})"
        return f"{self.mode.upper()} of equation {self.index}{at}: {self.equation} ({found})"


def first_disagreement(task: Problem, engine: str, rtol: float | None) -> Disagreement | None:
    """Differentiates the Program's prefixes by the engine and by JAX at the same precision, shortest first.

    Prefix k gives the results of equation k. The tangents of all equations come from one evaluation;
    cotangents take two compilations an equation, so a long Program takes its time. Runs the engine in this
    process.
    """
    program = trace(task.f)(*task.args)
    places = [k for k, eq in enumerate(program.equations) if any(v.type.inexact for v in eq.outputs)]
    allowed = tolerance(task.epsilon) if rtol is None else rtol
    looks: tuple[tuple[Mode, Look], ...] = (("jvp", _tangents), ("vjp", _cotangents))
    for mode, look in looks:
        for k, error in look(program, places, task, engine):
            if isinstance(error, str) or not _fine(error, allowed, task.epsilon):
                return _disagreement(k, program.equations[k], mode, error)
    return None


def candidate_disagreement(
    task: Problem, candidate: Callable, row: Row, rtol: float | None
) -> Disagreement | None:
    """The leaf in which a candidate is off most, in its value, else its VJP, else its JVP."""
    for mode in ("value", "vjp", "jvp"):
        by_leaf = row.leaves.get(mode, {})
        off = [
            leaf
            for leaf in by_leaf
            if any(d.startswith(f"{described(mode, leaf)}: ") for d in row.disagreements)
        ]
        if off:
            leaf = max(off, key=lambda leaf: (by_leaf[leaf].misplaced, by_leaf[leaf].relative))
            made = replace(task, f=candidate)
            rules = () if mode == "value" else blamed(best_derivative(made)[0].run, rtol)
            return Disagreement(None, "", ", ".join(rules), mode, by_leaf[leaf].relative, leaf=leaf)
    return None


Found = Iterator[tuple[int, Error | str]]  # the place, and the error there or why the engine failed
Look = Callable[[Program, Sequence[int], Problem, str], Found]


def _tangents(program: Program, places: Sequence[int], task: Problem, engine: str) -> Found:
    """All at once; one by one where the engine fails on some."""
    found = _difference(program, places, task, engine, "jvp")
    if isinstance(found, str):
        for k in places:
            alone = _difference(program, [k], task, engine, "jvp")
            yield k, alone if isinstance(alone, str) else _worst(alone)
        return
    errors = iter(found)
    for k in places:
        yield k, _worst([next(errors) for _ in _results(program.equations[k])])


def _cotangents(program: Program, places: Sequence[int], task: Problem, engine: str) -> Found:
    for k in places:
        found = _difference(program, [k], task, engine, "vjp")
        yield k, found if isinstance(found, str) else _worst(found)


def _difference(
    program: Program, places: Sequence[int], task: Problem, engine: str, mode: Mode
) -> list[Error] | str:
    """The engine's errors against JAX in a derivative of the results of these equations, or why it failed."""
    outputs = tuple(v for k in places for v in _results(program.equations[k]))
    prefix = replace(program, equations=program.equations[: places[-1] + 1], outputs=outputs, structure=None)
    part = problem(prefix.to_jax(), tuple(jnp.asarray(x) for x in task.leaves), seed=0)
    expected = thunk(mode, part.f, part)()
    try:
        found = jax.block_until_ready(thunk(mode, candidate(engine, part.f).function, part)())
    except Exception as reason:
        return first_line(reason)
    return [_numbers.error([widened(a)], [widened(b)]) for a, b in zip(found, expected, strict=True)]


def _results(eq: Equation):
    return [v for v in eq.outputs if v.type.inexact]


def _worst(errors: Sequence[Error]) -> Error:
    return max(errors, key=lambda e: (e.misplaced, e.relative))


def _fine(error: Error, rtol: float, epsilon: float) -> bool:
    return error.misplaced == 0 and (error.relative <= rtol or error.absolute <= 8 * epsilon)


def _disagreement(k: int, eq: Equation, mode: Mode, error: Error | str) -> Disagreement:
    results = ", ".join(f"{v}: {v.type}" for v in eq.outputs)
    text = f"{results} = {eq.op} {' '.join(map(str, eq.inputs))}".rstrip()
    if isinstance(error, str):
        return Disagreement(k, text, eq.source, mode, None, error)
    return Disagreement(k, text, eq.source, mode, error.relative)
