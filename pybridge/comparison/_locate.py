"""Where an engine goes wrong: the equation of a Program with which its derivative is no longer right.

Forward modes give every equation's result, or its tangent, at once, so that one compilation finds the first
that is off. Cotangents are seen at the arguments alone, behind all equations, and are found by bisection: in
`h_k` the first k equations are the engine's and the rest are JAX's. The VJPs of all `h_k`, for the
comparison's cotangents, should be the same; that of `h_0` is all JAX's, that of `h_n` all the engine's. If
the first is right and the last is not, there is a k such that that of `h_k` is right and that of `h_(k+1)` is
not, whatever the engine does between, and log n compilations find one. Equation k is what the second has
beyond the first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import repeat

import jax
import numpy as np

from ..frontend.emission import to_jax
from ..frontend.tracing import trace
from ..ir.program import Program
from ..ir.types import Atom
from ..quotients import widened
from . import _cuts, _numbers
from ._case import problem_of
from ._derivative_check import best_derivative
from ._disagreement import Disagreement, Mode, equation_text
from ._engines import candidate
from ._evaluation import Evaluation
from ._measure import first_line, thunk
from ._problem import Arrays, Problem
from ._rows import NO_ERROR, Error, Row, described, is_off
from ._witness import Witness
from ._wrong_rules import blamed

Found = list[Error] | str  # the errors, or why the engine failed
Look = Callable[[int], Found]  # with the first k equations by the engine


def first_disagreement(
    task: Problem, row: Row, baseline: Row | None, vjp: Arrays | None, rtol: float | None
) -> Disagreement | None:
    """By value, else JVP, else VJP: where the row has one that is off, or lacks one.

    baseline: JAX's row, whose errors are what rounding does; None where JAX is wrong. vjp: of the reference.
    What is within `rtol` is right, as in the row; where JAX itself is not, what rounding explains is.

    value, jvp: of the equations before it alone the engine has all results, or tangents, right; with this one
    too one is off, or it fails. It is the first that is off, unless what comes later matters to the engine.
    vjp: with the equations before it by the engine and the others by JAX, the arguments' cotangents are
    right; with this one by the engine too they are off, or it fails. If several equations are wrong, it is
    one of them: the first, unless what several do cancels.

    Runs the engine in this process. None where nothing is found.
    """
    own = baseline.leaves if baseline else {}
    if any(is_off(e, e, task.epsilon, rtol) for errors in own.values() for e in errors.values()):
        rtol = None
    program = trace(task.f)(*task.args)
    search = _Search(task, program, row.engine, rtol)
    modes: tuple[Mode, ...] = ("value", "jvp", "vjp")
    for mode in modes:
        known, theirs = row.leaves.get(mode, {}), own.get(mode, {})
        limits = [theirs.get(leaf, NO_ERROR) for leaf in known]
        if known and not search.wrong(list(known.values()), limits):
            continue
        place = search.backward(vjp, theirs) if mode == "vjp" else search.forward(mode)
        if place is not None:
            return search.disagreement(mode, *place)
    return None


def candidate_disagreement(
    task: Problem, candidate: Callable, row: Row, rtol: float | None
) -> Disagreement | None:
    """The leaf in which a candidate is off most, in its value, else its VJP, else its JVP."""
    modes: tuple[Mode, ...] = ("value", "vjp", "jvp")
    for mode in modes:
        by_leaf = row.leaves.get(mode, {})
        off = [
            leaf
            for leaf in by_leaf
            if any(d.startswith(f"{described(mode, leaf)}: ") for d in row.disagreements)
        ]
        if off:
            leaf = max(off, key=lambda leaf: _size(by_leaf[leaf]))
            made = replace(task, f=candidate)
            rules = () if mode == "value" else blamed(best_derivative(made)[0].run, rtol)
            return Disagreement(None, "", ", ".join(rules), mode, by_leaf[leaf].relative, leaf=leaf)
    return None


@dataclass(frozen=True, eq=False)
class _Search:
    task: Problem
    program: Program
    engine: str
    rtol: float | None

    @cached_property
    def flat(self) -> Problem:
        """The task, as that of the Program's inputs."""
        made = problem_of(replace(self.program, structure=None), self.task.leaves)
        return replace(made, tangents=self.task.tangents, cotangents=self.task.cotangents)

    @property
    def count(self) -> int:
        return len(self.program.equations)

    def wrong(self, found: Found, limits: Sequence[Error], sizes: Sequence[float] = ()) -> list[int]:
        """The places in `found` of what is off. limits: JAX's own errors. sizes: of what took part."""
        if isinstance(found, str):
            return [0]
        near = zip(found, limits, sizes or repeat(1.0), strict=False)
        allowed = self.task.epsilon, self.rtol
        return [i for i, (mine, own, size) in enumerate(near) if is_off(mine, own, *allowed, size)]

    def forward(self, mode: Mode) -> tuple[int, Error | str] | None:
        """The first equation whose result, or tangent, is off."""
        whole = self._results(self.count)
        if whole is None:
            return None
        try:
            expected = _reference(mode, whole)
            own = _errors(_run(mode, whole.f, whole), expected)
        except Exception:  # JAX has no such derivative
            return None
        sizes = self._sizes(mode, expected)

        def look(k: int) -> Found:
            part = self._results(k)
            if part is None:
                return []
            try:
                return _errors(_run(mode, candidate(self.engine, part.f).function, part), expected)
            except Exception as reason:
                return first_line(reason)

        def off(found: Found) -> list[int]:
            return self.wrong(found, own, sizes)

        found, right = look(self.count), 0
        if not (wrong := off(found)):
            return None
        if not isinstance(found, str):
            right = self._places[wrong[0]]
            alone = look(right + 1)
            if off(alone):
                return right, _worst(alone, [i for i in off(alone) if self._places[i] == right])
        k, found = self._boundary(found, look, off, right)
        return k, _worst(found, off(found))

    @cached_property
    def _places(self) -> list[int]:
        """Of the inexact results, the equations that give them."""
        return [k for k, eq in enumerate(self.program.equations) for _ in _cuts.inexact([eq])]

    def _sizes(self, mode: Mode, expected: Arrays) -> list[float]:
        """For each inexact result, how large its equation's operands are, or their tangents; at most 1."""
        inputs = [v for v in self.program.inputs if v.type.inexact]
        given = self.flat.point if mode == "value" else self.flat.tangents
        arrays = (*map(widened, given), *expected)
        sizes: dict[Atom, float] = {
            v: float(np.max(np.abs(x), initial=0.0, where=np.isfinite(x)))
            for v, x in zip((*inputs, *_cuts.inexact(self.program.equations)), arrays, strict=True)
        }
        found = []
        for k in self._places:
            operands = [sizes[a] for a in self.program.equations[k].inputs if a in sizes]
            found.append(min(1.0, max(operands, default=1.0)))
        return found

    def backward(self, expected: Arrays | None, own: Mapping[str, Error]) -> tuple[int, Error | str] | None:
        """An equation with which the arguments' cotangents are no longer right."""
        if expected is None:
            return None
        limits = [own.get(name, NO_ERROR) for name in self.task.argument_names]

        def look(k: int) -> Found:
            try:
                return _errors(_run("vjp", self._mixed(k), self.flat), expected)
            except Exception as reason:
                return first_line(reason)

        def off(found: Found) -> list[int]:
            return self.wrong(found, limits)

        found = look(self.count)
        if not off(found):
            return None
        k, found = self._boundary(found, look, off, 0)
        return k, _worst(found, off(found))

    def _boundary(
        self, found: Found, look: Look, off: Callable[[Found], list[int]], right: int
    ) -> tuple[int, Found]:
        """A place k such that `look(k)` is right and `look(k + 1)` is not, and what that gave.

        right: a place where it is. found: what all equations gave, which is not.
        """
        wrong = self.count
        while wrong - right > 1:
            middle = (right + wrong) // 2
            looked = look(middle)
            if off(looked):
                wrong, found = middle, looked
            else:
                right = middle
        return wrong - 1, found

    def _results(self, k: int) -> Problem | None:
        """The first k equations, with the results of all; None where none is a float."""
        part = _cuts.up_to(self.program, k)
        if not part.outputs:
            return None
        return replace(problem_of(part, self.task.leaves), tangents=self.task.tangents)

    def _mixed(self, k: int) -> Callable[..., tuple]:
        """The Program's function with the first k equations by the engine, and the others by JAX."""
        first, rest = _cuts.before(self.program, k), to_jax(_cuts.after(self.program, k))
        if not first.outputs:
            return rest
        engine = candidate(self.engine, to_jax(first)).function
        return lambda *xs: rest(*xs, *engine(*xs))

    def disagreement(self, mode: Mode, index: int, found: Error | str) -> Disagreement:
        eq = self.program.equations[index]
        witness = Witness(self.flat, self.program, self.engine, mode, index)
        error, reason = (None, found) if isinstance(found, str) else (found.relative, "")
        return Disagreement(
            index,
            equation_text(eq),
            eq.source,
            mode,
            error,
            reason,
            engine=self.engine,
            numbers=witness.numbers(),
            smallest_case=lambda: witness.smallest_case(self.rtol),
        )


def _run(mode: Mode, g: Callable, task: Problem) -> tuple:
    return jax.block_until_ready(thunk(mode, g, task)())


def _reference(mode: Mode, task: Problem) -> Arrays:
    """In float64, where JAX has it there."""
    try:
        return _evaluated(mode, Evaluation(task, double=True), task)
    except Exception:
        return _evaluated(mode, Evaluation(task, double=False), task)


def _evaluated(mode: Mode, run: Evaluation, task: Problem) -> Arrays:
    return run.value(run.point) if mode == "value" else run.jvp(run.point, task.tangents)


def _errors(found: Sequence, expected: Sequence) -> list[Error]:
    """Of as many as are found."""
    return [_numbers.error([widened(a)], [b]) for a, b in zip(found, expected, strict=False)]


def _size(error: Error) -> tuple[int, float]:
    return error.misplaced, error.relative


def _worst(found: Found, places: Sequence[int]) -> Error | str:
    return found if isinstance(found, str) else max((found[i] for i in places), key=_size)
