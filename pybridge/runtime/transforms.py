"""Program -> Program, made by Julia: the requests behind `Program.jvp()` and its siblings.

Every answer is remembered by the Program's content, so a derivative is made once a process.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from .. import errors
from ..ir.deferred import activated, remembered, settled
from ..ir.parser import parse, parse_all
from ..ir.program import Program
from .requests import ask, digits

Mask = tuple[bool, ...]


@dataclass(frozen=True, repr=False)
class Linearization:
    """A Program split at a point: what is known there, and a Program linear in the tangents.

    known: (x...) -> (y..., r...).
    linear: (r..., tangents of the active x...) -> tangents of the y marked in `has_tangent`; the other
        results do not depend on the active inputs.
    residuals: the number of r.
    """

    known: Program
    linear: Program
    has_tangent: Mask
    residuals: int

    def __repr__(self) -> str:
        return f"<Linearization: {self.known!r}, {self.linear!r}, {self.residuals} residuals>"

    def __str__(self) -> str:
        return f"{self.known}\n{self.linear}"

    def _repr_html_(self) -> str:
        return self.known._repr_html_() + self.linear._repr_html_()


def jvp(program: Program, active: Iterable[int] | None = None, *, optimize: bool = False) -> Program:
    """(x..., tangents of the active x...) -> (y..., tangents of the inexact y...).

    active: indices of inputs; all inexact ones by default.
    Raises NotDifferentiable for an active input that is neither float nor complex.
    """
    return _made(_jvp, program, _active(program, active), optimize)


def linearize(
    program: Program,
    active: Iterable[int] | None = None,
    *,
    optimize: bool = False,
    compact: bool = False,
) -> Linearization:
    """The Program split into a known part and a part linear in the tangents of the active inputs.

    compact: residuals are few and small: factors of a tangent are multiplied before they meet it, and the
        linear part computes large residuals again where that is cheap.
    """
    return _made(_linearize, program, _active(program, active), optimize, compact)


def transpose(
    program: Program,
    linear: Iterable[int] | None = None,
    cotangents: Iterable[int] | None = None,
    *,
    optimize: bool = False,
) -> Program:
    """(the other x..., cotangents of the given y...) -> (cotangents of the linear x...).

    linear: indices of the inputs in which the Program is linear jointly; all inexact ones by default.
    cotangents: indices of the results whose cotangents are given, the others' are zero; all by default.
    Raises UnsupportedPrimitive where the Program is not linear in those inputs.
    """
    given = _mask(program, cotangents, len(program.outputs), "result")
    return _made(_transpose, program, _active(program, linear), optimize, given)


def vjp(
    program: Program, active: Iterable[int] | None = None, *, value: bool = False, optimize: bool = False
) -> Program:
    """transpose of linearize: (x..., cotangents of the inexact y...) -> (cotangents of the active x...).

    value: the results y... come first.
    """
    return _made(_vjp, program, _active(program, active), optimize, value)


def _made(make: Callable[..., Any], program: Program, mask: Mask, optimize: bool, *options: Any) -> Any:
    """What `make` gives for the Program, with the user's derivative rules that it needs."""
    if not program.rule_names:
        return make(program, mask, optimize, *options)
    return _made_with_rules(program, make, mask, optimize, *options)


@remembered(maxsize=1024)
def _made_with_rules(program: Program, make: Callable[..., Any], mask: Mask, optimized: bool, *options: Any):
    ready = program if make is _transpose else activated(program, mask)

    def done(made: Program) -> Program:
        result = settled(replace(made, rules=ready.rules))
        return optimize(result) if optimized and result != made else result

    made = make(ready.bare, mask, optimized, *options)
    if isinstance(made, Linearization):
        return replace(made, known=done(made.known), linear=done(made.linear))
    return done(made)


def optimize(program: Program) -> Program:
    """The same function in fewer equations; values change by rounding at most."""
    return replace(_optimize(program.bare), rules=program.rules) if program.rules else _optimize(program)


@functools.lru_cache(maxsize=4096)
def _optimize(program: Program) -> Program:
    return _program(program, ask("optimize", program))


def normalize(program: Program) -> Program:
    """The Program as Julia reads, type-checks and prints it."""
    return _program(program, ask("normalize", program))


@functools.lru_cache(maxsize=4096)
def _jvp(program: Program, active: Mask, optimize: bool) -> Program:
    return _program(program, ask("jvp", program, digits(active), _flag(optimize)))


@functools.lru_cache(maxsize=4096)
def _linearize(program: Program, active: Mask, optimize: bool, compact: bool) -> Linearization:
    flags = [_flag(optimize), "compact" if compact else ""]
    head, _, text = ask("linearize", program, digits(active), *flags).partition("\n")
    mask, residuals = head.removeprefix("m").split()
    known, linear = parse_all(text, program.constants)
    return Linearization(known, linear, tuple(digit == "1" for digit in mask), int(residuals))


@functools.lru_cache(maxsize=4096)
def _transpose(program: Program, linear: Mask, optimize: bool, cotangents: Mask) -> Program:
    return _program(program, ask("transpose", program, digits(linear), digits(cotangents), _flag(optimize)))


@functools.lru_cache(maxsize=4096)
def _vjp(program: Program, active: Mask, optimize: bool, value: bool) -> Program:
    return _program(program, ask("vjp", program, digits(active), str(int(value)), _flag(optimize)))


def _program(origin: Program, text: str) -> Program:
    return parse(text, origin.constants)


def _active(program: Program, active: Iterable[int] | None) -> Mask:
    if active is None:
        return tuple(type_.inexact for type_ in program.input_types)
    mask = _mask(program, active, len(program.inputs), "input")
    for i, (chosen, type_) in enumerate(zip(mask, program.input_types, strict=True)):
        if chosen and not type_.inexact:
            raise errors.NotDifferentiable(
                f"input {i} of {program.name} has type {type_}; only float and complex inputs have "
                "derivatives. Convert it to a float, or leave it out of `active`."
            )
    return mask


def _mask(program: Program, indices: Iterable[int] | None, count: int, what: str) -> Mask:
    if indices is None:
        return (True,) * count
    chosen = set(indices)
    for i in chosen:
        if not 0 <= i < count:
            raise errors.ArgumentError(f"{program.name} has no {what} {i}; it has {count}")
    return tuple(i in chosen for i in range(count))


def _flag(optimize: bool) -> str:
    return "optimize" if optimize else ""
