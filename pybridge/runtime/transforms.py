"""Program -> Program, made by Julia: the requests behind `Program.jvp()` and its siblings.

Every answer is remembered by the Program's content, so a derivative is made once a process.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

from ..ir.deferred import activated, remembered, settled
from ..ir.parser import parse, parse_all
from ..ir.program import Program
from ..ir.structure import Structure
from .chosen import Chosen, Mask, active_inputs, mask_of
from .requests import ask, digits


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


def jvp(program: Program, active: Chosen = None, *, optimize: bool = False) -> Program:
    """(x..., tangents of the active x...) -> (y..., tangents of the inexact y...).

    active: indices or names of inputs; all inexact ones by default.
    Raises NotDifferentiable for an active input that is neither float nor complex.
    """
    mask = active_inputs(program, active)
    made = _made(_jvp, program, mask, optimize)
    return _structured(program, made, lambda of, s: of.jvp(s, mask, _inexact(program)))


def linearize(
    program: Program, active: Chosen = None, *, optimize: bool = False, compact: bool = False
) -> Linearization:
    """The Program split into a known part and a part linear in the tangents of the active inputs.

    compact: residuals are few and small: factors of a tangent are multiplied before they meet it, and the
        linear part computes large residuals again where that is cheap.
    """
    mask = active_inputs(program, active)
    lin = _made(_linearize, program, mask, optimize, compact)
    if program.structure is None:
        return lin
    known = _structured(program, lin.known, lambda of, s: of.known(s, lin.residuals))
    linear = _structured(
        program,
        lin.linear,
        lambda of, s: of.linear(s, mask, lin.has_tangent, lin.residuals),
    )
    return replace(lin, known=known, linear=linear)


def transpose(
    program: Program, linear: Chosen = None, cotangents: Chosen = None, *, optimize: bool = False
) -> Program:
    """(the other x..., cotangents of the given y...) -> (cotangents of the linear x...).

    linear: the inputs, by indices or names, in which it is linear jointly; all inexact ones by default.
    cotangents: the results, by indices or names, whose cotangents are given, the others' are zero; all by
        default.
    Raises UnsupportedPrimitive where the Program is not linear in those inputs.
    """
    given = mask_of(program, cotangents, "result")
    mask = active_inputs(program, linear)
    made = _made(_transpose, program, mask, optimize, given)
    return _structured(program, made, lambda of, s: of.transpose(s, mask, given))


def vjp(program: Program, active: Chosen = None, *, value: bool = False, optimize: bool = False) -> Program:
    """transpose of linearize: (x..., cotangents of the inexact y...) -> (cotangents of the active x...).

    value: the results y... come first.
    """
    mask = active_inputs(program, active)
    made = _made(_vjp, program, mask, optimize, value)
    return _structured(program, made, lambda of, s: of.vjp(s, mask, _inexact(program), value))


def with_gradient(program: Program, active: Chosen = None) -> Program | None:
    """(x...) -> (y..., the gradient of the one inexact y, a scalar, by the active x...), optimized.

    None where that y does not depend on them.
    """
    return _made(_with_gradient, program, active_inputs(program, active), True)


def _inexact(program: Program) -> Mask:
    return tuple(type_.inexact for type_ in program.output_types)


def _structured(
    origin: Program, made: Program, derived: Callable[[ModuleType, Structure], Structure]
) -> Program:
    """What is remembered by content is of many origins, so each gives it its own structure."""
    if origin.structure is None:
        return made
    from ..frontend import derived_structures  # imports JAX, which Programs do without

    return made.with_structure(derived(derived_structures, origin.structure))


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
    if made is None:
        return None
    if isinstance(made, Linearization):
        return replace(made, known=done(made.known), linear=done(made.linear))
    return done(made)


def optimize(program: Program) -> Program:
    """The same function in fewer equations; values change by rounding at most."""
    made = replace(_optimize(program.bare), rules=program.rules) if program.rules else _optimize(program)
    return made.with_structure(program.structure)


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
    mask, residuals = head.split(" ")  # no digits where there are no results
    known, linear = parse_all(text, program.constants)
    return Linearization(known, linear, tuple(digit == "1" for digit in mask), int(residuals))


@functools.lru_cache(maxsize=4096)
def _transpose(program: Program, linear: Mask, optimize: bool, cotangents: Mask) -> Program:
    return _program(program, ask("transpose", program, digits(linear), digits(cotangents), _flag(optimize)))


@functools.lru_cache(maxsize=4096)
def _vjp(program: Program, active: Mask, optimize: bool, value: bool) -> Program:
    return _program(program, ask("vjp", program, digits(active), str(int(value)), _flag(optimize)))


@functools.lru_cache(maxsize=4096)
def _with_gradient(program: Program, active: Mask, optimize: bool) -> Program | None:
    text = ask("with_gradient", program, digits(active))
    return _program(program, text) if text else None


def _program(origin: Program, text: str) -> Program:
    return parse(text, origin.constants)


def _flag(optimize: bool) -> str:
    return "optimize" if optimize else ""
