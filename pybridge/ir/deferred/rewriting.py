"""Programs changed equation by equation."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

from ..program import Equation, Program
from ..types import Atom, Literal, TensorType, Var


class Rewriting:
    """The equations of a Program in the making, out of those of another."""

    def __init__(self, program: Program):
        self.program = program
        self.equations: list[Equation] = []
        self.values: dict[Atom, Atom] = {}
        self.constants = dict(program.constants)
        bound = len(program.inputs) + sum(len(eq.outputs) for eq in program.equations)
        self.ids = itertools.count(bound)

    def read(self, atom: Atom) -> Atom:
        """What stands for an atom of the original Program."""
        return self.values.get(atom, atom)

    def keep(self, eq: Equation) -> None:
        """Appends an equation of the original Program, changed or not; its results keep their names."""
        inputs = tuple(map(self.read, eq.inputs))
        same = all(a is b for a, b in zip(inputs, eq.inputs, strict=True))
        self.equations.append(eq if same else replace(eq, inputs=inputs))

    def replace(self, eq: Equation, by: Program) -> None:
        """Appends what `by` does with the operands, in the place of the equation."""
        results = self.inline(by, [self.read(a) for a in eq.inputs], eq.source)
        self.values.update(zip(eq.outputs, results, strict=True))

    def inline(self, program: Program, args: Sequence[Atom], source: str = "") -> list[Atom]:
        """Appends the equations of another Program, applied to atoms of this one."""
        self.constants.update(program.constants)
        values: dict[Atom, Atom] = dict(zip(program.inputs, args, strict=True))
        for eq in program.equations:
            outputs = tuple(self.variable(v.type) for v in eq.outputs)
            inputs = tuple(values.get(a, a) for a in eq.inputs)
            self.equations.append(replace(eq, inputs=inputs, outputs=outputs, source=eq.source or source))
            values.update(zip(eq.outputs, outputs, strict=True))
        return [values.get(a, a) for a in program.outputs]

    def zeros(self, type_: TensorType) -> Atom:
        zero = Literal(0, type_.dtype)
        if not type_.shape:
            return zero
        var = self.variable(type_)
        attrs = {"shape": type_.shape, "dims": ()}
        self.equations.append(Equation("broadcast_in_dim", (zero,), (var,), attrs))
        return var

    def variable(self, type_: TensorType) -> Var:
        return Var(next(self.ids), type_)

    def finish(self, before: Sequence[Atom] = ()) -> Program:
        """The Program made, with these results in front of the original's."""
        outputs = (*before, *map(self.read, self.program.outputs))
        equations = tuple(self.equations)
        return replace(self.program, equations=equations, outputs=outputs, constants=self.constants)


def wrapped(eq: Equation) -> Program:
    """A nested Program of one equation, a function of all its operands."""
    inputs = tuple(Var(i, a.type) for i, a in enumerate(eq.inputs))
    outputs = tuple(Var(i, v.type) for i, v in enumerate(eq.outputs, len(inputs)))
    return Program("", inputs, (replace(eq, inputs=inputs, outputs=outputs),), outputs)
