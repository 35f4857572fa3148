"""What there is at an equation at which an engine is wrong, and a short Program that shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import jax
import numpy as np

from ..frontend import keys
from ..frontend.emission import to_jax
from ..ir.program import Program
from ..ir.types import Var
from . import _cuts
from ._case import Case, problem_of, wrong
from ._disagreement import Mode, Numbers
from ._engines import candidate
from ._measure import thunk
from ._problem import Problem

Named = Mapping[Var, np.ndarray]


@dataclass(frozen=True, eq=False)
class Witness:
    """task: of the Program's inputs. index: of the equation."""

    task: Problem
    program: Program
    engine: str
    mode: Mode
    index: int

    def numbers(self) -> Numbers:
        """Of the equation alone: what it is given, and what the engine and JAX make of it."""
        window = _cuts.window(self.program, self.index, self.index + 1)
        task = self._problem(window)
        given = {str(v): self.values[v] for v in window.inputs}
        inputs, results = ([v for v in group if v.type.inexact] for group in (window.inputs, window.outputs))
        asked, what = results, ""
        if self.mode == "jvp":
            what = "tangent of "
            given |= {f"{what}{v}": x for v, x in zip(inputs, task.tangents, strict=True)}
        elif self.mode == "vjp":
            asked, what = inputs, "cotangent of "
            given |= {f"{what}{v}": x for v, x in zip(results, task.cotangents, strict=True)}
        names = [f"{what}{v}" for v in asked]
        by_jax = _attempt(lambda: thunk(self.mode, task.f, task)())
        by_engine = _attempt(lambda: thunk(self.mode, candidate(self.engine, task.f).function, task)())
        return Numbers(given, *(dict(zip(names, found, strict=False)) for found in (by_engine, by_jax)))

    def smallest_case(self, rtol: float | None) -> Case:
        """The equation at its operands and directions, if it is wrong there; else with 1, 3, 7 ... equations
        before it; else the whole.
        """
        for start in _starts(self.index):
            window = _cuts.window(self.program, start, self.index + 1)
            case = _case(self.engine, window.program, _scaled(self._problem(window)), rtol)
            if wrong(case.run()[1]):
                return case
        return _case(self.engine, self.program, self.task, rtol)

    def _problem(self, window: _cuts.Window) -> Problem:
        """The window's function, along the directions that the search had."""
        task = problem_of(window.program, [self.values[v] for v in window.inputs])
        if self.mode == "jvp":
            own = tuple(self.tangents[v] for v in window.inputs if v.type.inexact)
            return replace(task, tangents=own)
        if self.mode == "vjp":
            results = [v for v in window.outputs if v.type.inexact]
            pairs = zip(results, task.cotangents, strict=True)
            return replace(task, cotangents=tuple(self.cotangents.get(v, 0 * like) for v, like in pairs))
        return task

    @cached_property
    def values(self) -> Named:
        """Of all variables, by JAX."""
        results = [v for eq in self.program.equations for v in eq.outputs]
        whole = _cuts.part(self.program, self.program.inputs, self.program.equations, results)
        inputs = [keys.raw(x) for x in self.task.leaves]
        found = jax.jit(to_jax(whole))(*map(jax.numpy.asarray, inputs))
        names = (*self.program.inputs, *results)
        return dict(zip(names, map(np.asarray, (*inputs, *found)), strict=True))

    @cached_property
    def tangents(self) -> Named:
        """Of the inexact variables, along the task's tangents."""
        part = _cuts.up_to(self.program, len(self.program.equations))
        task = replace(problem_of(part, self.task.leaves), tangents=self.task.tangents)
        inputs = [v for v in self.program.inputs if v.type.inexact]
        names = (*inputs, *_cuts.inexact(self.program.equations))
        found = thunk("jvp", task.f, task)()
        return dict(zip(names, map(np.asarray, (*self.task.tangents, *found)), strict=True))

    @cached_property
    def cotangents(self) -> Named:
        """Of what is live behind the equation, for the task's cotangents."""
        end = self.index + 1
        between = _cuts.live(self.program, end)
        rest = _cuts.after(self.program, end)
        task = problem_of(rest, [*self.task.leaves, *(self.values[v] for v in between)])
        found = thunk("vjp", task.f, replace(task, cotangents=self.task.cotangents))()
        names = [v for v in (*self.program.inputs, *between) if v.type.inexact]
        return dict(zip(names, map(np.asarray, found), strict=True))


def _starts(index: int) -> Iterator[int]:
    size = 1
    while size <= index:
        yield index + 1 - size
        size = 2 * size
    yield 0


def _case(engine: str, program: Program, task: Problem, rtol: float | None) -> Case:
    inputs = tuple(np.asarray(keys.raw(x)) for x in task.leaves)
    return Case(engine, replace(program, structure=None), inputs, task.tangents, task.cotangents, rtol)


def _scaled(task: Problem) -> Problem:
    """Directions of order 1, for which absolute errors of the size of rounding are none."""
    return replace(task, tangents=_normal(task.tangents), cotangents=_normal(task.cotangents))


def _normal(directions: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    """All by one power of two."""
    largest = max((float(np.max(np.abs(x), initial=0)) for x in directions), default=0.0)
    if not 0 < largest < np.inf:
        return directions
    factor = 2.0 ** -int(np.floor(np.log2(largest)))
    return tuple(np.asarray(x * factor).astype(x.dtype) for x in directions)


def _attempt(derive: Callable[[], Any]) -> list[np.ndarray]:
    """Nothing where it fails; of that the disagreement tells."""
    try:
        return [np.asarray(x) for x in derive()]
    except Exception:
        return []
