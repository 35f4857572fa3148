"""Parts of a Program: the equations before a place, those from there on, and a few in the middle."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ..ir.program import Equation, Program
from ..ir.types import Atom, Var


def before(program: Program, k: int) -> Program:
    """The first `k` equations; they give what is live behind them."""
    return part(program, program.inputs, program.equations[:k], live(program, k))


def after(program: Program, k: int) -> Program:
    """The other equations: of the Program's inputs, then of what is live there."""
    inputs = (*program.inputs, *live(program, k))
    return part(program, inputs, program.equations[k:], program.outputs)


def up_to(program: Program, k: int) -> Program:
    """The first `k` equations; they give all their results that are floats or complex numbers."""
    return part(program, program.inputs, program.equations[:k], inexact(program.equations[:k]))


@dataclass(frozen=True)
class Window:
    """A run of equations as a Program; its inputs and results by the names that they have in the whole."""

    program: Program
    inputs: list[Var]
    outputs: list[Var]


def window(program: Program, start: int, end: int) -> Window:
    """The equations from `start` to before `end`: of what they read; with what is live behind them, and all
    results of the last.
    """
    equations = program.equations[start:end]
    bound = {v for eq in equations for v in eq.outputs}
    inputs = variables(a for eq in equations for a in eq.inputs if a not in bound)
    outputs = variables([*(v for v in live(program, end) if v in bound), *equations[-1].outputs])
    return Window(part(program, inputs, equations, outputs), inputs, outputs)


def live(program: Program, k: int) -> list[Var]:
    """The results of the first `k` equations that the others read, or that are the Program's."""
    bound = {v for eq in program.equations[:k] for v in eq.outputs}
    used = (a for eq in program.equations[k:] for a in eq.inputs)
    return variables(a for a in (*used, *program.outputs) if a in bound)


def variables(atoms: Iterable[Atom]) -> list[Var]:
    """Each once, in the order in which they are bound."""
    return sorted({a for a in atoms if isinstance(a, Var)}, key=lambda v: v.id)


def inexact(equations: Iterable[Equation]) -> list[Var]:
    return [v for eq in equations for v in eq.outputs if v.type.inexact]


def part(
    program: Program, inputs: Sequence[Var], equations: Sequence[Equation], outputs: Sequence[Atom]
) -> Program:
    """With the Program's constants and rules."""
    return replace(
        program,
        inputs=tuple(inputs),
        equations=tuple(equations),
        outputs=tuple(outputs),
        structure=None,
    )
