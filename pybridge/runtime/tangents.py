"""A Program and its tangents: in two halves, as reverse mode needs them, or computed jointly."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..errors import NotDifferentiable, UnsupportedPrimitive
from ..frontend import derived_structures
from ..frontend.primitives.custom import lacks_forward_mode
from ..ir.dead_code import needed_inputs, restricted, with_inputs
from ..ir.deferred import remembered
from ..ir.deferred.rewriting import Rewriting
from ..ir.linearity import NARROW, is_linear
from ..ir.program import Equation, Program
from ..ir.types import Atom, Var
from .transforms import jvp, linearize, with_gradient

_WIDE = ("f32", "f64")


@dataclass(frozen=True)
class Split:
    """A linearization made ready for binding: residuals that are arguments or results are not computed again.

    known: (x...) -> (y..., the residuals that are neither).
    residuals: for each residual its place in the list x... y... r...
    """

    known: Program
    linear: Program
    has_tangent: tuple[bool, ...]
    residuals: tuple[int, ...]


@remembered(maxsize=1024)
def split(program: Program, active: tuple[int, ...], compact: bool) -> Split:
    lin = linearize(program, active, optimize=True, compact=compact)
    count = len(lin.known.outputs) - lin.residuals
    outputs = list(lin.known.outputs[:count])
    places: dict[Atom, int] = {
        var: i for i, var in reversed(list(enumerate([*lin.known.inputs, *outputs]))) if isinstance(var, Var)
    }
    for atom in lin.known.outputs[count:]:
        if not isinstance(atom, Var) or atom not in places:
            places[atom] = len(lin.known.inputs) + len(outputs)
            outputs.append(atom)
    residuals = tuple(places[atom] for atom in lin.known.outputs[count:])
    structure = program.structure and derived_structures.known(program.structure, len(outputs) - count)
    known = replace(lin.known, outputs=tuple(outputs), structure=structure)
    return Split(known, lin.linear, lin.has_tangent, residuals)


@remembered(maxsize=1024)
def gradient(program: Program, active: tuple[int, ...]) -> Program | None:
    """(x...) -> (y..., the gradient by the active x...) of a Program with one real scalar.

    None where it has other inexact results, no derivative or no transpose; and where a multiple of the
    gradient is not the gradient of a multiple:
    - numbers are complex, or narrow: a loss is scaled because cotangents of few bits are lost unless the
      backward pass itself is scaled;
    - a user's rule is not linear in its cotangent, as those that clip, round or normalize it;
    - the cotangent is rounded, as `reduce_precision` does.
    """
    types = [t for t in program.output_types if t.inexact]
    chosen = [program.input_types[i] for i in active]
    if len(types) != 1 or types[0].shape or not all(t.dtype in _WIDE for t in (*types, *chosen)):
        return None
    ops = {eq.op for eq in program.all_equations()}
    if any(v.type.dtype in NARROW for eq in program.all_equations() for v in eq.outputs):
        return None
    try:
        if not ops.isdisjoint(_PERHAPS_NOT_LINEAR) and not _scales(program, active):
            return None
        return with_gradient(program, active)
    except (NotDifferentiable, UnsupportedPrimitive):
        return None


_PERHAPS_NOT_LINEAR = ("custom_vjp", "custom_vjp_tangent", "linear_call", "reduce_precision")
"""The primitives whose backward rule a user wrote, or rounds."""


def _scales(program: Program, active: tuple[int, ...]) -> bool:
    """Whether the gradient is linear in the cotangent."""
    whole = gradient_of_multiple(program, active)
    if whole is None:
        return True
    results = [i >= len(program.outputs) for i in range(len(whole.outputs))]
    return is_linear(restricted(whole, results), [*(False for _ in program.inputs), True])


@remembered(maxsize=1024)
def gradient_of_multiple(program: Program, active: tuple[int, ...]) -> Program | None:
    """(x..., c) -> (y..., the gradient of c times the one inexact y, a scalar, by the active x...).

    c goes through the backward pass as a cotangent does. None where that y does not depend on the active x.
    """
    rewriting = Rewriting(program)
    for eq in program.equations:
        rewriting.keep(eq)
    (place,) = (i for i, t in enumerate(program.output_types) if t.inexact)
    y = program.outputs[place]
    factor, product, same = (rewriting.variable(y.type) for _ in range(3))
    rewriting.equations += [
        Equation("mul", (factor, y), (product,)),
        Equation("stop_gradient", (y,), (same,)),  # only the product has a derivative
    ]
    outputs = [product, *program.outputs]
    outputs[place + 1] = same
    multiple = replace(
        program,
        inputs=(*program.inputs, factor),
        equations=tuple(rewriting.equations),
        outputs=tuple(outputs),
    )
    made = with_gradient(multiple, active)
    return made and restricted(made, [i > 0 for i in range(len(made.outputs))])


@dataclass(frozen=True)
class Halves:
    """How to compute (x..., tangents...) -> results... in halves.

    known: (x...) -> the results that no tangent is needed for, and residuals.
    linear: (residuals..., tangents...) -> the other results.
    residuals: for each residual its place among the inputs and outputs of `known`.
    results: for each result its place among the outputs of `known` and `linear`.
    """

    known: Program
    linear: Program
    residuals: tuple[int, ...]
    results: tuple[int, ...]

    def __repr__(self) -> str:
        return f"<Halves: {self.known!r}, {self.linear!r}>"

    def run(self, apply: Callable[[Program, list[Any]], Sequence[Any]], args: Sequence[Any]) -> list[Any]:
        """The results for x... tangents..., by `apply`, which gives a Program's results for arguments."""
        xs = list(args[: len(self.known.inputs)])
        known = apply(self.known, xs) if self.known.outputs else []
        residuals = map([*xs, *known].__getitem__, self.residuals)
        tangents = args[len(xs) :]
        linear = apply(self.linear, [*residuals, *tangents]) if self.linear.outputs else []
        return list(map([*known, *linear].__getitem__, self.results))


@remembered(maxsize=1024)
def joint(program: Program, active: tuple[int, ...], cut: Split) -> tuple[Program, Halves] | None:
    """(x..., tangents of the active x...) -> (y..., tangents of the y marked in `cut.has_tangent`).

    Primals and tangents share what they compute, and a loop runs once for both. None where no result has a
    tangent, or where a tangent that does not exist is an operand, while the linear half does without it.
    """
    if not any(cut.has_tangent):
        return None
    made = jvp(program, active, optimize=True)
    ys, first = len(program.outputs), len(cut.known.outputs)
    has = [has for has, t in zip(cut.has_tangent, program.output_types, strict=True) if t.inexact]
    results = (*range(ys), *range(first, first + len(cut.linear.outputs)))
    both = restricted(made, [True] * ys + has)
    if lacks_forward_mode(both):
        return None
    return both, Halves(cut.known, cut.linear, cut.residuals, results)


@remembered(maxsize=1024)
def with_results(
    program: Program, of: Halves, used: tuple[bool, ...]
) -> tuple[Program, Halves, tuple[bool, ...]]:
    """A joint Program with the results in use alone, and which of the inputs these need."""
    program = restricted(program, used)
    results = set(itertools.compress(of.results, used))
    inputs, outputs, residuals = len(of.known.inputs), len(of.known.outputs), len(of.residuals)

    in_linear = [outputs + i in results for i in range(len(of.linear.outputs))]
    linear = restricted(of.linear, in_linear)
    read = needed_inputs(linear)
    places = set(itertools.compress(of.residuals, read))
    in_known = [i in results or inputs + i in places for i in range(outputs)]
    known = restricted(of.known, in_known)

    own = [*(a or i in places for i, a in enumerate(needed_inputs(known))), *read[residuals:]]
    needed = [a or b for a, b in zip(own, needed_inputs(program), strict=True)]
    of_atoms, of_outputs = _places([*needed[:inputs], *in_known]), _places([*in_known, *in_linear])
    halves = Halves(
        with_inputs(known, needed[:inputs]),
        with_inputs(linear, [*read[:residuals], *needed[inputs:]]),
        tuple(of_atoms[i] for i in itertools.compress(of.residuals, read)),
        tuple(of_outputs[i] for i in itertools.compress(of.results, used)),
    )
    return with_inputs(program, needed), halves, tuple(needed)


def _places(kept: Sequence[bool]) -> dict[int, int]:
    """Where what is kept stands afterwards, by where it stood."""
    return {old: new for new, old in enumerate(itertools.compress(itertools.count(), kept))}
