"""Bounds on the trips of while loops: promises, on which derivatives that XLA runs rely."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from .program import Equation, Program


def bounded(program: Program, bound: int | None) -> Program:
    """The Program with a bound on the trips of every while loop, those of nested Programs included."""
    change = partial(bounded, bound=bound)
    equations = (eq.with_bodies(change) for eq in program.equations)
    equations = (
        replace(eq, attrs={**eq.attrs, "bound": bound}) if eq.op == "while" else eq for eq in equations
    )
    rules = {name: rule.mapped(change) for name, rule in program.rules.items()}
    return replace(program, equations=tuple(equations), rules=rules)


def common_bound(program: Program) -> int | None:
    """A bound for every while loop in it, if each has one."""
    bounds = [eq.attrs["bound"] for eq in _equations(program) if eq.op == "while"]
    return None if None in bounds else max(bounds, default=None)


def relies_on_bounds(program: Program) -> bool:
    """Whether it is a derivative that XLA runs right only where bounds are kept."""
    return any(eq.op == "while_passes" and eq.attrs["bound"] is not None for eq in _equations(program))


def _equations(program: Program) -> Iterator[Equation]:
    """With those of nested Programs."""
    for eq in program.equations:
        yield eq
        for body in eq.bodies:
            yield from _equations(body)
