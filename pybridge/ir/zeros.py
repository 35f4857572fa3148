"""Values that are zero whatever the inputs are."""

from __future__ import annotations

from collections.abc import Container

from .program import Equation, Program
from .types import Atom, Literal


def is_zero(atom: Atom, zeros: Container[Atom]) -> bool:
    """zeros: the variables of which that is known."""
    return atom.value == 0 if isinstance(atom, Literal) else atom in zeros


def gives_zeros(eq: Equation, zeros: Container[Atom]) -> bool:
    """Whether the results are zero: broadcast literals, as derivatives have them, or small constants."""
    if eq.op == "constant":
        value = eq.attrs.get("value")
        return isinstance(value, tuple) and not any(value)
    return eq.op == "broadcast_in_dim" and is_zero(eq.inputs[0], zeros)


def zero_results(program: Program) -> tuple[bool, ...]:
    zeros: set[Atom] = set()
    for eq in program.equations:
        if gives_zeros(eq, zeros):
            zeros.update(eq.outputs)
    return tuple(is_zero(atom, zeros) for atom in program.outputs)
