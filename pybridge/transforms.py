"""Program -> Program, made by Julia: the requests behind `Program.jvp()` and its siblings.

Every answer is remembered by the Program's content, so a derivative is made once a process.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from . import errors, julia
from .dump import dump
from .numerals import DTYPES
from .parser import parse, parse_all
from .pending import activated, remembered, settled
from .program import Program

Mask = tuple[bool, ...]

# Julia's exceptions that have a namesake here; any other stays a JuliaError.
_KINDS = {
    kind.__name__: kind
    for kind in (
        errors.ProgramTypeError,
        errors.ProgramSyntaxError,
        errors.ProgramVersionError,
        errors.NotDifferentiable,
        errors.UnsupportedPrimitive,
        errors.EngineUnavailable,
    )
}
ENZYME_FAILED = "EnzymeFailed"


@dataclass(frozen=True)
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
    return _program(program, _ask("optimize", program))


def normalize(program: Program) -> Program:
    """The Program as Julia reads, type-checks and prints it."""
    return _program(program, _ask("normalize", program))


def evaluate(program: Program, *arrays) -> list[np.ndarray]:
    """Runs the Program in Julia on numpy arrays; raises ArgumentError where they do not fit its inputs."""
    inputs = [_argument(i, x, type_) for i, (x, type_) in enumerate(_paired(program, arrays))]
    outputs = [np.empty(_static(t.shape), DTYPES[t.dtype]) for t in program.output_types]
    refs = {ref: np.ascontiguousarray(data) for ref, data in program.constants.items()}
    _ask("evaluate", program, _addresses(inputs), _addresses(outputs), _references(refs))
    return outputs


def compile_kernel(program: Program, constants: dict[str, np.ndarray]) -> tuple[int, int]:
    """The address of the Program's FFI handler in native code, and the bytes of workspace that it takes.

    constants: the Program's, contiguous; from now on they must stay where they are.
    Raises UnsupportedPrimitive where a primitive has no native kernel.
    """
    handler, workspace = _ask("compile", program, program.digest, _references(constants)).split()
    return int(handler), int(workspace)


def enzyme_handler(
    program: Program,
    mode: str,
    active: Mask,
    batch: tuple[int, ...],
    marks: Sequence[Mask],
    constants: dict[str, np.ndarray],
) -> int:
    """The address of an FFI handler for a derivative by Enzyme.jl.

    mode: "forward" or "reverse", with respect to the `active` inputs; all results are inexact.
    batch: sizes; marks: for each operand the axes of the batch that it has.
    constants: as for `compile_kernel`.
    """
    sizes = ",".join(map(str, batch)) or "-"
    masks = ",".join("".join("1" if m else "0" for m in mark) for mark in marks) if batch else "-"
    how = (mode, _digits(active), sizes, masks)
    key = ":".join((program.digest, *how))
    return int(_ask("enzyme", program, key, *how, _references(constants)))


@functools.lru_cache(maxsize=4096)
def _jvp(program: Program, active: Mask, optimize: bool) -> Program:
    return _program(program, _ask("jvp", program, _digits(active), _flag(optimize)))


@functools.lru_cache(maxsize=4096)
def _linearize(program: Program, active: Mask, optimize: bool, compact: bool) -> Linearization:
    flags = [_flag(optimize), "compact" if compact else ""]
    head, _, text = _ask("linearize", program, _digits(active), *flags).partition("\n")
    mask, residuals = head.removeprefix("m").split()
    known, linear = parse_all(text, program.constants)
    return Linearization(known, linear, tuple(digit == "1" for digit in mask), int(residuals))


@functools.lru_cache(maxsize=4096)
def _transpose(program: Program, linear: Mask, optimize: bool, cotangents: Mask) -> Program:
    return _program(
        program, _ask("transpose", program, _digits(linear), _digits(cotangents), _flag(optimize))
    )


@functools.lru_cache(maxsize=4096)
def _vjp(program: Program, active: Mask, optimize: bool, value: bool) -> Program:
    return _program(program, _ask("vjp", program, _digits(active), str(int(value)), _flag(optimize)))


def _ask(command: str, program: Program, *arguments: str) -> str:
    """Sends a request; Julia's own exceptions come out as pybridge's."""
    words = [a for a in arguments if a]
    try:
        answer = julia.request(command, str(program), arguments=words)
    except errors.JuliaError as e:
        dump(command, words, program, f"{e.kind}: {e}\n{e.stacktrace}")
        translated = _translated(e, command)
        if (
            translated is e
        ):  # not `from e`, which would make it its own cause: whoever follows causes never ends
            raise
        raise translated from e
    dump(command, words, program, answer)
    return answer


def _translated(error: errors.JuliaError, command: str) -> errors.PyBridgeError:
    if error.kind == ENZYME_FAILED:
        return errors.EnzymeError(str(error), kind=error.kind, stacktrace=error.stacktrace)
    kind = _KINDS.get(error.kind)
    if kind is None:
        return error
    if kind is not errors.UnsupportedPrimitive:
        return kind(str(error))
    primitive = str(error).partition(":")[0]
    source = re.search(r" \(at (.*)\)$", str(error))
    advice = "docs/primitives.md lists what is supported"
    if command == "compile":
        advice = 'execute="auto" and "xla" run it as XLA operations'
    return kind(
        f"{error}; {advice}",
        primitive=primitive,
        source=source[1] if source else "",
    )


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


def _digits(mask: Mask) -> str:
    return "m" + "".join("1" if chosen else "0" for chosen in mask)


def _flag(optimize: bool) -> str:
    return "optimize" if optimize else ""


def _paired(program: Program, arrays: Sequence):
    if len(arrays) != len(program.inputs):
        raise errors.ArgumentError(f"{program.name} takes {len(program.inputs)} arrays, got {len(arrays)}")
    return zip(arrays, program.input_types, strict=True)


def _argument(i: int, x, type_) -> np.ndarray:
    """A contiguous array of the input's exact type; Python numbers take its dtype."""
    dtype = DTYPES[type_.dtype]
    array = np.asarray(x, dtype) if isinstance(x, (bool, int, float, complex)) else np.asarray(x)
    if array.dtype != dtype or array.shape != _static(type_.shape):
        raise errors.ArgumentError(
            f"argument {i} has type {array.dtype}{list(array.shape)} where {type_} is needed"
        )
    return np.ascontiguousarray(array).reshape(array.shape)


def _static(shape) -> tuple[int, ...]:
    if not all(isinstance(dim, int) for dim in shape):
        raise errors.ArgumentError(
            "a Program with symbolic dimensions cannot run in Julia; trace it with concrete shapes"
        )
    return tuple(shape)


def _addresses(arrays: Sequence[np.ndarray]) -> str:
    return ",".join(str(a.ctypes.data) for a in arrays) or "-"


def _references(arrays: dict[str, np.ndarray]) -> str:
    return ",".join(f"{ref}={a.ctypes.data}" for ref, a in arrays.items()) or "-"
