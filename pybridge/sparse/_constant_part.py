"""A Program in two: what of its derivative is the same at every argument, and the rest.

A derivative is a sum over the paths of a Program from its argument to its results. As long as a path goes
through operations that are linear, with coefficients that are known, what it contributes is a constant. Such
a path has two parts: values that are affine in the argument, and then values that are not, but of which the
results are affine functions. Each path leaves the first part once. So each Program here has `stop_gradient`
where the paths of the other do so: both have the values of the Program, and their derivatives add up to its
derivative, without a subtraction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ..ir.program import Equation, Program
from ..ir.schema import names
from ..ir.types import Atom, Literal, Var
from ._detection import Abstract, read


@dataclass(frozen=True)
class Parts:
    """The Program with the constant part of its derivative, and with all but that."""

    constant: Program
    rest: Program


def parted(program: Program, values: Sequence[Abstract]) -> Parts | None:
    """None where no path is constant. values: what is known of each variable."""
    places = [_linear_places(eq, [read(values, a) for a in eq.inputs]) for eq in program.equations]
    affine = _affine(program, values, places)
    ending = _ending(program, values, places)
    constant_uses: set[tuple[int, int]] = set()
    other_uses: set[tuple[int, int]] = set()
    for number, (eq, linear) in enumerate(zip(program.equations, places, strict=True)):
        if eq.outputs[0] in affine:
            continue
        ends = all(v in ending for v in eq.outputs)
        for place, atom in enumerate(eq.inputs):
            if atom in affine:
                (constant_uses if ends and place in linear else other_uses).add((number, place))
    results = {k for k, atom in enumerate(program.outputs) if atom in affine}
    if not constant_uses and not results:
        return None
    return Parts(_stopped(program, other_uses, set()), _stopped(program, constant_uses, results))


def _affine(program: Program, values: Sequence[Abstract], places: Sequence[frozenset[int]]) -> set[Atom]:
    """The variables that depend on the argument by linear operations alone."""
    found: set[Atom] = {v for v in program.inputs if values[v.id].matrix is not None}
    for eq, linear in zip(program.equations, places, strict=True):
        dependent = [
            (k, a)
            for k, a in enumerate(eq.inputs)
            if not isinstance(a, Literal) and values[a.id].matrix is not None
        ]
        if dependent and all(k in linear and a in found for k, a in dependent):
            found.update(v for v in eq.outputs if values[v.id].matrix is not None)
    return found


def _ending(program: Program, values: Sequence[Abstract], places: Sequence[frozenset[int]]) -> set[Atom]:
    """The variables of which all results are affine functions, by linear operations alone."""
    failing: set[Atom] = set()
    for eq, linear in zip(reversed(program.equations), reversed(places), strict=True):
        bad = any(v in failing for v in eq.outputs)
        failing.update(a for k, a in enumerate(eq.inputs) if isinstance(a, Var) and (bad or k not in linear))
    return {v for eq in program.equations for v in eq.outputs if v not in failing}


def _stopped(program: Program, uses: set[tuple[int, int]], results: set[int]) -> Program:
    """The Program with the derivative stopped at uses, (equation, place), and at results."""
    fresh = 1 + max((v.id for eq in program.equations for v in eq.outputs), default=len(program.inputs))
    equations: list[Equation] = []

    def stopped(atom: Atom) -> Var:
        nonlocal fresh
        var = Var(fresh, atom.type)
        fresh += 1
        equations.append(Equation("stop_gradient", (atom,), (var,)))
        return var

    for number, eq in enumerate(program.equations):
        inputs = tuple(stopped(a) if (number, k) in uses else a for k, a in enumerate(eq.inputs))
        equations.append(replace(eq, inputs=inputs))
    outputs = tuple(stopped(a) if k in results else a for k, a in enumerate(program.outputs))
    return replace(program, equations=tuple(equations), outputs=outputs)


# In which operands an equation is linear, with coefficients that are known

_SUMS = frozenset(
    names(
        """
        add sub neg copy real imag reshape squeeze transpose rev broadcast_in_dim slice split concatenate pad
        reduce_sum cumsum reduce_window_sum optimization_barrier saveable
        """
    )
)


def _linear_places(eq: Equation, operands: Sequence[Abstract]) -> frozenset[int]:
    if eq.op in _SUMS:
        return frozenset(range(len(operands)))
    if eq.op == "convert_element_type":
        return frozenset({0} if eq.inputs[0].type.inexact and eq.outputs[0].type.inexact else ())
    rule = _LINEAR.get(eq.op)
    return frozenset(rule([x.value is not None for x in operands]) if rule else ())


_Rule = Callable[[list[bool]], Sequence[int]]


def _factors(known: list[bool]) -> list[int]:
    return [k for k in (0, 1) if known[1 - k]]


_LINEAR: dict[str, _Rule] = {
    **dict.fromkeys(("mul", "dot_general", "conv_general_dilated"), _factors),
    "div": lambda known: [0] if known[1] else [],
    "gather": lambda known: [0] if known[1] else [],
    "dynamic_slice": lambda known: [0] if all(known[1:]) else [],
    "dynamic_update_slice": lambda known: [0, 1] if all(known[2:]) else [],
    **dict.fromkeys(("scatter", "scatter_add", "scatter_sub"), lambda known: [0, 2] if known[1] else []),
    "select_n": lambda known: list(range(1, len(known))) if known[0] else [],
}
