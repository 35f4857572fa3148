"""What `pybridge show` shows of a Program. What is needed for it is imported when it is."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import ArgumentError, UnknownOption
from ..ir.numerals import FLOATS

if TYPE_CHECKING:
    from ..ir.program import Program


class Derivative(StrEnum):
    """The derivative Programs that `show` knows."""

    vjp = "vjp"
    jvp = "jvp"
    linearize = "linearize"
    grad = "grad"
    hvp = "hvp"


def derivatives(program: Program, derivative: Derivative | None) -> list[Program]:
    match derivative:
        case Derivative.vjp:
            return [program.vjp()]
        case Derivative.jvp:
            return [program.jvp()]
        case Derivative.linearize:
            split = program.linearize()
            return [split.known, split.linear]
        case Derivative.grad:
            from ..runtime.tangents import gradient, split

            active = tuple(i for i, type in enumerate(program.input_types) if type.inexact)
            if (whole := gradient(program, active)) is not None:
                return [whole]
            halves = split(program, active, True)
            tangents = range(len(halves.residuals), len(halves.linear.inputs))
            return [halves.known, halves.linear.transpose(linear=tangents, optimize=True)]
        case Derivative.hvp:
            return [_hvp(program)]
        case None:
            return [program]


def _hvp(program: Program) -> Program:
    """(x..., a vector for each active x) -> the Hessian times these, by the active x."""
    from ..ir.dead_code import restricted
    from ..runtime.transforms import with_gradient

    results = [t for t in program.output_types if t.inexact]
    if len(results) != 1 or results[0].shape or results[0].dtype not in FLOATS:
        types = ", ".join(map(str, program.output_types)) or "nothing"
        raise ArgumentError(
            f"hvp is of a function whose result is one real number, and this one gives {types}"
        )
    whole = with_gradient(program)
    if whole is None:
        raise ArgumentError("the result depends on no argument by which it can be differentiated")
    count = len(program.output_types)
    gradient = restricted(whole, [i >= count for i in range(len(whole.outputs))])
    both = gradient.jvp()
    return restricted(both, [i >= len(gradient.outputs) for i in range(len(both.outputs))]).optimize()


def plan_of(program: Program) -> str:
    from ..runtime.native import explain

    return explain(program)


def execution(program: Program) -> str:
    """How the Program runs on the CPU, as a comment of its text."""
    from ..runtime.native import refusal

    refused = refusal(program)
    how = "as a native kernel" if refused is None else f"as XLA operations: {refused}"
    return f"{program.name} runs {how}"


def keep(path: Path, made: list[Program], more: bool) -> None:
    """Writes the Program to an archive. more: whether other output was requested, too."""
    if more or len(made) != 1:
        raise UnknownOption("--output writes one Program: not with --explain, --plan, grad or linearize")
    from ..runtime.archives import save

    save(path, made[0])
