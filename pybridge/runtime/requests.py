"""Requests about Programs, to Julia: their arguments as text, and Julia's exceptions as pybridge's."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .. import errors
from ..ir.program import Program
from . import answers, julia
from .dump import dump

# Julia's exceptions that have a namesake here; any other stays a JuliaError.
_KINDS: dict[str, type[errors.PyBridgeError]] = {
    kind.__name__: kind
    for kind in (
        errors.ProgramTypeError,
        errors.ProgramSyntaxError,
        errors.ProgramVersionError,
        errors.NotDifferentiable,
        errors.UnsupportedPrimitive,
        errors.KernelRefused,
        errors.EngineUnavailable,
    )
}
# What people are told who wait for a request.
_DOING = {
    "compile": "compiling",
    "object": "compiling",
    "library_object": "compiling",
    "explain": "compiling",
    "routine_object": "compiling what kernels share",
    "host_object": "compiling what kernels share",
    "normalize": "reading",
    "check": "checking the types of",
    "optimize": "simplifying",
    "evaluate": "evaluating",
    "enzyme": "compiling the derivative by Enzyme.jl of",
    "jvp": "differentiating",
    "linearize": "differentiating",
    "transpose": "differentiating",
    "vjp": "differentiating",
    "with_gradient": "differentiating",
}
ENZYME_FAILED = "EnzymeFailed"
"""Julia's name for what pybridge calls EnzymeError."""


def enzyme_error(error: errors.JuliaError) -> errors.EnzymeError:
    return errors.EnzymeError(str(error), kind=error.kind, stacktrace=error.stacktrace)


def ask(
    command: str, program: Program | None, *arguments: str, before: str = "", memory: Sequence[Any] = ()
) -> str:
    """Sends a request about a Program, if about one; Julia's own exceptions come out as pybridge's.

    before: what its text begins with. memory: arrays whose addresses are among the arguments.
    """
    text = program.text if program is not None else ""
    name = (program.name or "a Program") if program else ""
    return ask_about_text(command, text, *arguments, before=before, name=name, memory=memory)


def ask_about_text(
    command: str,
    text: str,
    *arguments: str,
    before: str = "",
    name: str = "a text",
    memory: Sequence[Any] = (),
) -> str:
    """As `ask`, about a Program that is there as text alone. name: what people who wait are told."""
    words, verb = [a for a in arguments if a], _DOING.get(command, "")
    doing = f"{verb} {name} in Julia" if verb and name else verb
    try:
        answer = answers.answer(
            command,
            words,
            text,
            lambda: julia.request(command, before + text, arguments=words, doing=doing, memory=memory),
        )
    except errors.JuliaError as e:
        dump(command, words, text, f"{e.kind}: {e}\n{e.stacktrace}")
        translated = _translated(e, command)
        if translated is e:  # `from e` would make it its own cause: code that follows causes would loop
            raise
        raise translated from e
    dump(command, words, text, answer)
    return answer


def _translated(error: errors.JuliaError, command: str) -> errors.PyBridgeError:
    if error.kind == ENZYME_FAILED:
        return enzyme_error(error)
    kind = _KINDS.get(error.kind)
    if kind is None:
        return error
    if not issubclass(kind, errors.UnsupportedPrimitive):
        return kind(str(error))
    primitive = str(error).partition(":")[0]
    source = re.search(r" \(at (.*)\)$", str(error))
    advice = "docs/primitives.md lists what is supported"
    if command in ("compile", "object"):
        advice = 'execute="auto" and "xla" run it as XLA operations'
    elif command == "library_object":
        advice = "a library holds what has native kernels, and nothing else"
    return kind(
        f"{error}; {advice}",
        primitive=primitive,
        source=source[1] if source else "",
    )


def digits(mask: Sequence[bool]) -> str:
    return "m" + "".join("1" if chosen else "0" for chosen in mask)


def addresses(arrays: Sequence[np.ndarray]) -> str:
    return ",".join(str(a.ctypes.data) for a in arrays) or "-"


def references(arrays: Mapping[str, np.ndarray]) -> str:
    return ",".join(f"{ref}={a.ctypes.data}" for ref, a in arrays.items()) or "-"
