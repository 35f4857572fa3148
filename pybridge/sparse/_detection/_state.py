"""What one run of the interpreter knows and has left."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...ir.program import Program
from ._abstract import Abstract

STEPS = 30_000
"""Equations in the iterations of loops that are followed one by one; each takes from some ten microseconds
to a tenth of a millisecond."""


@dataclass
class Detection:
    """columns: the number of elements of the argument.

    interpreter: of nested Programs. steps: what is left of `STEPS`.
    reverse_only: whether a derivative is by a rule of the user's that has reverse mode alone.
    """

    columns: int
    interpreter: Callable[[Program, Sequence[Abstract], Detection], list[Abstract]]
    steps: int = STEPS
    reverse_only: bool = False

    def follow(self, body: Program, inputs: Sequence[Abstract]) -> list[Abstract]:
        """What is known of the results of a nested Program."""
        return self.interpreter(body, inputs, self)
