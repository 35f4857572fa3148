"""Bounds on the trips of while loops: promises, which are seen to be kept.

With a bound, derivatives run the loop as a scan of so many trips. Its condition still holds after them where
the loop runs longer, and then its results, and so their derivatives, are multiplied by NaN. Where the loop
runs as a loop the condition never holds after it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from .program import Equation, Program
from .types import Atom, Literal, TensorType, Var


def bounded(program: Program, bound: int) -> Program:
    """The Program with a bound on the trips of every while loop, those of nested Programs included."""
    change = partial(bounded, bound=bound)
    fresh = itertools.count(1 + max((v.id for v in _bound_variables(program)), default=-1))
    instead: dict[Atom, Atom] = {}
    equations: list[Equation] = []
    for eq in program.equations:
        inputs = tuple(instead.get(atom, atom) for atom in eq.inputs)
        eq = replace(eq.with_bodies(change), inputs=inputs)
        if eq.op == "while":
            loop = replace(eq, attrs={**eq.attrs, "bound": bound})
            equations += _watched(loop, fresh, instead)
        else:
            equations.append(eq)
    outputs = tuple(instead.get(atom, atom) for atom in program.outputs)
    rules = {name: rule.mapped(change) for name, rule in program.rules.items()}
    return replace(program, equations=tuple(equations), outputs=outputs, rules=rules)


def has_bound(program: Program) -> bool:
    """Whether a while loop in it has a bound."""
    return any(
        (eq.op == "while" and eq.attrs["bound"] is not None) or any(map(has_bound, eq.bodies))
        for eq in program.equations
    )


def _bound_variables(program: Program) -> Iterator[Var]:
    yield from program.inputs
    for eq in program.equations:
        yield from eq.outputs


def _watched(loop: Equation, fresh: Iterator[int], instead: dict[Atom, Atom]) -> Iterator[Equation]:
    """The loop, its condition once more, and its floats times 1, or NaN where that holds.

    instead: what stands for the loop's other results from here on.
    """
    results = tuple(Var(next(fresh), v.type) for v in loop.outputs)
    yield replace(loop, outputs=results)
    consts = loop.inputs[: loop.attrs["cond_consts"]]
    condition = loop.attrs["cond"]
    values: dict[Atom, Atom] = dict(zip(condition.inputs, (*consts, *results), strict=True))
    for eq in condition.equations:
        values |= {v: Var(next(fresh), v.type) for v in eq.outputs}
        inputs = tuple(values.get(atom, atom) for atom in eq.inputs)
        yield Equation(eq.op, inputs, tuple(values[v] for v in eq.outputs), eq.attrs, eq.source)  # type: ignore[misc]
    (still,) = (values.get(atom, atom) for atom in condition.outputs)
    for old, new in zip(loop.outputs, results, strict=True):
        if not old.type.inexact:
            instead[old] = new
            continue
        factor = Var(next(fresh), TensorType(old.type.dtype))
        cases = (Literal(1.0, old.type.dtype), Literal(math.nan, old.type.dtype))
        yield Equation("select_n", (still, *cases), (factor,), {}, loop.source)
        if old.type.rank:
            whole = Var(next(fresh), old.type)
            attrs = {"shape": old.type.shape, "dims": ()}
            yield Equation("broadcast_in_dim", (factor,), (whole,), attrs, loop.source)
            factor = whole
        yield Equation("mul", (new, factor), (old,), {}, loop.source)
