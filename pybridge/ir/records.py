"""Records: what a trip of a loop keeps for the backward half, several numbers side by side in one array."""

from __future__ import annotations

from collections.abc import Sequence

from .program import Equation, Program
from .types import Var


def is_stack_of_records(program: Program, place: int) -> bool:
    """Whether a result is what a loop, or a loop in a loop, stacks of such arrays."""
    made = _producer(program.equations, program.outputs[place])
    if made is None or made[0].op != "scan":
        return False
    loop, k = made
    body: Program = loop.attrs["body"]
    inner = _producer(body.equations, body.outputs[k])
    if inner is not None and inner[0].op == "concatenate":
        return len(inner[0].outputs[0].type.shape) == 1
    return is_stack_of_records(body, k)


def _producer(equations: Sequence[Equation], result: object) -> tuple[Equation, int] | None:
    """The equation that gives it, and its place among what that gives."""
    for eq in equations:
        if isinstance(result, Var) and result in eq.outputs:
            return eq, eq.outputs.index(result)
    return None
