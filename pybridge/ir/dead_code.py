"""Programs of which only some results are wanted."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

from .program import Program
from .types import SymDim


def restricted(program: Program, used: Sequence[bool]) -> Program:
    """The Program with the results in use alone and what they need; its inputs stay."""
    outputs = tuple(itertools.compress(program.outputs, used))
    live, kept = set(outputs), []
    for eq in reversed(program.equations):
        if not live.isdisjoint(eq.outputs):
            live.update(eq.inputs)
            kept.append(eq)
    return replace(program, equations=tuple(reversed(kept)), outputs=outputs)


def needed_inputs(program: Program) -> list[bool]:
    """Which inputs something reads: all where there are symbolic sizes, which are known from them."""
    if is_symbolic(program):
        return [True] * len(program.inputs)
    read = {*program.outputs, *(atom for eq in program.equations for atom in eq.inputs)}
    return [v in read for v in program.inputs]


def with_inputs(program: Program, kept: Sequence[bool]) -> Program:
    return replace(program, inputs=tuple(itertools.compress(program.inputs, kept)))


def is_symbolic(program: Program) -> bool:
    """Whether a size of an input is a variable."""
    return any(isinstance(dim, SymDim) for t in program.input_types for dim in t.shape)
