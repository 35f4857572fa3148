"""From a Program and arguments to the Program in mixed precision: the model chooses, trials decide."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...errors import ArgumentError, PrecisionUnreachable
from ...frontend import emission
from ...ir.program import Program
from ...quotients import widened
from .._blame._nonfinite import equation_text
from .._blame._rounding import probes
from ._building import graph_of
from ._choice import choice
from ._graph import Graph
from ._narrowing import narrowed
from ._report import Kept, Precision
from ._trial import Tolerance, Trial, largest, of_floats, trials_around
from ._weights import NARROW, Weights

_PROBES = 6  # elements of the results from which a sweep goes back
_NEARBY = 2  # points around the example's arguments
_SHORT = 300  # equations of what XLA compiles as one in less time than one by one
_LONG = 3000  # equations from which on there is one
_ATTEMPTS = 8  # of choices that trials refuse

EXPENSIVE = "it would cost more than it saves"
ERROR = "of its error"
OPERANDS = "of rounding its operands"


@dataclass(frozen=True)
class _Attempt:
    """A choice, and what trials say of it: relative errors at the example's point and at those around it."""

    program: Program
    chosen: np.ndarray
    measured: float
    nearby: float | None


@dataclass(eq=False)
class Search:
    program: Program
    arguments: Sequence[Any]
    tolerance: Tolerance
    seed: int
    progress: Callable[[str], None]

    def run(self) -> tuple[Program, Precision]:
        if not _has_wide(self.program):
            raise ArgumentError(self._nothing())
        self.progress("running it in 64 bits")
        values = emission.all_values(self.program, self.arguments)
        reference = of_floats(self.program, [emission.read(values, a) for a in self.program.outputs])
        points = [Trial(self.arguments, reference)]
        count = 1 if self.program.equation_count() > _LONG else _NEARBY
        points += trials_around(self.program, self.arguments, self.seed, count)
        weights = Weights()
        charges, magnitudes = self._charges(weights, values)
        allowed = np.array([self.tolerance.allowed(m) for m in magnitudes])
        graph = graph_of(self.program, charges, allowed, weights.uncovered)
        scale = allowed / np.where(np.array(magnitudes) > 0, magnitudes, 1.0)
        self._check_reachable(graph, scale)
        attempt = self._attempts(graph, points)
        return attempt.program, self._report(graph, attempt, scale, weights)

    def _nothing(self) -> str:
        types = ", ".join(map(str, self.program.input_types))
        return (
            f"{self.program.name}({types}) computes nothing in 64 bits: pass float64 arrays, with "
            "jax.config.update('jax_enable_x64', True)"
        )

    # The model

    def _charges(self, weights: Weights, values: Sequence[Any]) -> tuple[list[Any], list[float]]:
        """By element looked at: what a sweep back charges, and the largest magnitude in its result."""
        program = self.program
        charges, magnitudes = [], []
        back = self._sweep(weights)
        for leaf, index in probes(program, _PROBES):
            result = emission.read(values, program.outputs[leaf])
            self.progress(f"errors of result {leaf}{list(index) or ''}")
            cotangents: list[Any] = [None] * len(program.outputs)
            cotangents[leaf] = jnp.zeros_like(result).at[index].set(1)
            charges.append(back(values, cotangents))
            magnitudes.append(largest(widened(result)))
        return charges, magnitudes

    def _sweep(self, weights: Weights) -> Callable[[Sequence[Any], Sequence[Any]], Any]:
        """From values and cotangents to charges: compiled as one, or each kind of equation by itself."""
        exact = [True] * len(self.program.inputs)
        short = self.program.equation_count() <= _SHORT and not _has_while(self.program)

        def back(values: Sequence[Any], cotangents: Sequence[Any]) -> Any:
            return weights.back(self.program, values, cotangents, exact, not short)[1]

        return jax.jit(back) if short else back

    def _check_reachable(self, graph: Graph, scale: np.ndarray) -> None:
        finite = np.where(np.isfinite(graph.bounds), graph.bounds, 0.0)
        if finite.max(initial=0.0) <= 1:
            return
        worst = int(np.argmax(finite))
        bound = float((graph.bounds * scale)[worst])
        raise PrecisionUnreachable(
            f"{self.program.name} does not keep an error of {self.tolerance.error:.1e} even in 64 bits: the "
            f"bound of its rounding error is {bound:.1e} of the result; ask for more, or see pb.blame, which "
            "names the equations",
            bound=bound,
            error=self.tolerance.error,
        )

    # Trials

    def _attempts(self, graph: Graph, points: Sequence[Trial]) -> _Attempt:
        part = 1.0
        for _ in range(_ATTEMPTS):
            self.progress("choosing")
            chosen = choice(graph, part)
            if not chosen.any():
                break
            attempt, worst = self._attempt(graph, chosen, points)
            if worst <= 1:
                return attempt
            part /= max(4.0, 2 * worst) if np.isfinite(worst) else 100.0
        return _Attempt(self.program, np.zeros(len(graph.gain), bool), 0.0, 0.0)

    def _attempt(self, graph: Graph, chosen: np.ndarray, points: Sequence[Trial]) -> tuple[_Attempt, float]:
        place = graph.place
        made = narrowed(self.program, lambda path, var: bool(chosen[place[path, var.id]]))
        self.progress("trying it")
        errors = [point.errors(made, self.tolerance) for point in points]
        nearby = max((e.relative for e in errors[1:]), default=None)
        return _Attempt(made, chosen, errors[0].relative, nearby), max(e.part for e in errors)

    # The report

    def _report(self, graph: Graph, attempt: _Attempt, scale: np.ndarray, weights: Weights) -> Precision:
        chosen = attempt.chosen
        kept = sorted(self._kept(graph, chosen), key=lambda k: -k.error)
        bounds = (graph.bounds + graph.error(chosen)) * scale
        return Precision(
            self.program.name,
            ", ".join(map(str, self.program.input_types)),
            self.tolerance.error,
            self.tolerance.absolute,
            float(bounds.max(initial=0.0)),
            float((graph.bounds * scale).max(initial=0.0)),
            attempt.measured,
            attempt.nearby,
            len(graph.sites) - len(kept),
            len(graph.sites),
            tuple(kept),
            tuple(sorted(weights.uncovered)),
        )

    def _kept(self, graph: Graph, chosen: np.ndarray) -> Iterator[Kept]:
        for s in graph.sites:
            if chosen[s.node]:
                continue
            error = float(graph.own[s.node].max(initial=0.0))
            reason = graph.pinned.get(s.node) or self._reason(graph, chosen, s.node)
            yield Kept(s.eq.op, equation_text(s.eq), s.eq.source, s.number, s.place, error, reason)

    def _reason(self, graph: Graph, chosen: np.ndarray, node: int) -> str:
        left = 1 - graph.bounds - graph.error(chosen)
        if np.any(graph.own[node] > left):
            return ERROR
        also = chosen.copy()
        also[node] = True
        return EXPENSIVE if np.all(graph.error(also) + graph.bounds <= 1) else OPERANDS


def _has_while(program: Program) -> bool:
    return any(eq.op == "while" or any(map(_has_while, eq.running_bodies)) for eq in program.equations)


def _has_wide(program: Program) -> bool:
    types = [v.type for eq in program.equations for v in eq.outputs]
    return any(t.dtype in NARROW for t in types) or any(
        _has_wide(b) for eq in program.equations for b in eq.running_bodies
    )
