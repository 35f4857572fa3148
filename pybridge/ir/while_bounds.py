"""Bounds on the trips of while loops: promises, on which derivatives that XLA runs rely."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from .program import Equation, Program


def bounded(program: Program, bound: int | None) -> Program:
    """The Program with a bound, if there is one, on the trips of every while loop, nested ones included."""
    if bound is None:
        return program
    change = partial(bounded, bound=bound)

    def with_bound(eq: Equation) -> Equation:
        eq = eq.with_bodies(change)
        return replace(eq, attrs={**eq.attrs, "bound": bound}) if eq.op == "while" else eq

    rules = {name: rule.mapped(change) for name, rule in program.rules.items()}
    return replace(program, equations=tuple(map(with_bound, program.equations)), rules=rules)


def common_bound(program: Program) -> int | None:
    """A bound for every while loop in it, if each has one."""
    bounds = [eq.attrs["bound"] for eq in program.all_equations() if eq.op == "while"]
    return None if None in bounds else max(bounds, default=None)


def relies_on_bounds(program: Program) -> bool:
    """Whether it is a derivative that XLA runs right only where bounds are kept."""
    return any(eq.op == "while_passes" and eq.attrs["bound"] is not None for eq in program.all_equations())
