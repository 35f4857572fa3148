"""How values go into the bodies of an equation and out of them: alike for loops, branches and calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...ir.program import Equation, Program
from .._blame._frames import CALLED, passed

Path = tuple[tuple[int, str, int], ...]
"""Of a body: the equation's number, the attribute and the place in it, from the outermost Program on."""


@dataclass(frozen=True)
class Wire:
    """One body that runs.

    name, index: the attribute that has it, and the place in it if it holds several.
    operands: for each input of the body, the number of the equation's operand that it has (at first).
    results: for each output, the number of the equation's result that it is, or none for a predicate.
    carried: pairs of an input of the body and a result of the equation, which are one value in all trips.
    swept: whether an error can come out of it other than by a decision.
    """

    name: str
    index: int
    body: Program
    operands: Sequence[int]
    results: Sequence[int | None]
    carried: Sequence[tuple[int, int]] = ()
    swept: bool = True

    def path(self, around: Path, number: int) -> Path:
        return (*around, (number, self.name, self.index))

    @property
    def title(self) -> str:
        """Of where it is, for people."""
        match self.name:
            case "branches":
                return f"branch {self.index}"
            case "body" | "call":
                return ""
        return self.name


def wires(eq: Equation) -> list[Wire]:
    """The bodies of an equation that can be narrowed inside; none of one that is taken as a whole."""
    attrs: Any = eq.attrs
    operands, results = range(len(eq.inputs)), range(len(eq.outputs))
    match eq.op:
        case "cond":
            branches: Sequence[Program] = attrs["branches"]
            return [Wire("branches", i, b, operands[1:], results) for i, b in enumerate(branches)]
        case "scan":
            carried = [(attrs["consts"] + i, i) for i in range(attrs["carry"])]
            return [Wire("body", 0, attrs["body"], operands, results, carried)]
        case "while":
            n, m = attrs["cond_consts"], attrs["body_consts"]
            of_cond = [*operands[:n], *operands[n + m :]]
            decided = [(n + i, i) for i in results]
            carried = [(m + i, i) for i in results]
            return [
                Wire("cond", 0, attrs["cond"], of_cond, [None], decided, swept=False),
                Wire("body", 0, attrs["body"], operands[n:], results, carried),
            ]
        case "custom_linear_solve":
            given = passed(eq, operands)
            count = len(eq.inputs) - sum(attrs["consts"])
            first = len(given) - count
            tied = [(first + i, i) for i in range(count)]  # x has the type of b
            return [Wire("solve", 0, attrs["solve"], given, results, tied)]
        case op if op in CALLED:
            return [Wire(CALLED[op], 0, attrs[CALLED[op]], operands, results)]
    return []
