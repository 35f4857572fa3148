"""Engine "transpose": a Julia function as a Program, which becomes operations of JAX.

Julia traces the function once for the types of its arguments (julia/src/tracing/described.jl). What JAX then
has is code like any other: it needs no rules of ours, and no Julia when it runs or is differentiated.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from .. import errors
from ..frontend.emission import to_jax
from ..ir.numerals import DTYPES
from ..ir.parser import parse
from ..ir.program import Equation, Program, constant_ref
from ..ir.types import TensorType
from ..runtime.answers import answer_where_lasting
from ..runtime.dump import dump
from . import trees
from .call import Function, describe
from .compile import ask
from .static import is_fixed

# What Julia calls the reasons for which a function cannot be traced.
_UNTRACEABLE = ("TracedControlFlow", "TracedConversion", "EscapedTracer", "GlobalChanged", "TracingFailed")
_COMMAND = "function_trace"
_ADVICE = 'engine="enzyme" calls the function as it is'


@dataclass(frozen=True, eq=False)
class Traced:
    """The leaves of the arguments go into the Program, those of `result`, a tree of types, come out."""

    program: Program
    result: Any

    @functools.cached_property
    def run(self) -> Callable[..., Sequence[Any]]:
        """A function of the leaves, compiled where nothing is traced. Inlined, JAX 0.10 loses lines."""
        return jax.jit(to_jax(self.program, at_sources=True))


def traced(function: Function, arguments: str, result: str | None) -> Traced:
    """The function for arguments of these types; `result` is what it is to give, None to learn it.

    Raises JuliaTracingError where Julia cannot trace it, JuliaError for all else that Julia has to say.
    """
    return _traced(function, arguments, result, not jax.config.jax_enable_x64)


@functools.lru_cache(maxsize=1024)
def _traced(function: Function, arguments: str, result: str | None, narrow: bool) -> Traced:
    head = [*describe(function, arguments), f"result {result or '-'}", f"narrow {int(narrow)}"]
    body = "\n".join(head) + "\n\n" + function.source.code
    try:
        if function.source.lasting:
            answer = answer_where_lasting(
                _COMMAND, body, lambda: _ask(function, body), lambda text: text.startswith("keep\n")
            )
        else:
            answer = _ask(function, body)
    except errors.JuliaError as failure:
        dump(_COMMAND, [], body, f"{failure.kind}: {failure}\n{failure.stacktrace}")
        if failure.kind in _UNTRACEABLE:
            raise _untraceable(function, arguments, failure) from None
        raise
    dump(_COMMAND, [], body, answer)
    return _read(answer)


def _ask(function: Function, body: str) -> str:
    return ask(_COMMAND, body, doing=f"tracing the Julia function {function.name}", users=True)


def _untraceable(function: Function, arguments: str, failure: errors.JuliaError) -> errors.JuliaTracingError:
    line = re.search(r" \(at ([^()]*:\d+(?: \(.*\))?)\)$", str(failure))
    advice = [*_names_of_jaxprad(str(failure)), *_traced_integers(function, arguments), _ADVICE]
    return errors.JuliaTracingError(
        f"{function.name} cannot be traced: {failure}; {'; '.join(advice)}",
        kind=failure.kind,
        stacktrace=failure.stacktrace,
        source=line[1] if line else "",
    )


def _names_of_jaxprad(message: str) -> Iterator[str]:
    """Where a source has to say that it uses what the message advises, or lacks."""
    if re.search(r"`(JaxprAD\.)?(select|cond|while_loop|scan)\b", message) or re.search(
        r"UndefVarError: `?(JaxprAD|select|cond|while_loop|scan)\b", message
    ):
        yield "after `using JaxprAD` a source has `select`, `JaxprAD.cond`, `while_loop` and `scan`"


def _traced_integers(function: Function, arguments: str) -> Iterator[str]:
    """Where the value that was not known may be one that the caller knows."""
    integers = [
        i
        for i, type_ in enumerate(trees.read(arguments))
        if isinstance(type_, TensorType) and not type_.shape and DTYPES[type_.dtype].kind in "iu"
    ]
    if not integers:
        return
    # Those that are not static have other positions than the caller's.
    places = "" if is_fixed(function) else f"={tuple(integers) if len(integers) > 1 else integers[0]}"
    yield (
        f"integers that JAX passes are traced, as all numbers are: with static_argnums{places} they are "
        "constants for Julia, which may be a size, an index or the length of a loop"
    )


def _read(answer: str) -> Traced:
    """What Julia answers: see `julia/src/serve/functions.jl`."""
    head, _, text = answer.partition("\n\n")
    _, tree, *captured = head.split("\n")
    return Traced(_closed(parse(text), list(map(_array, captured))), trees.read(tree))


def _array(line: str) -> tuple[TensorType, np.ndarray]:
    kind, _, data = line.partition(" ")
    type_ = trees.read(kind)
    shape = tuple(type_.shape)
    assert len(data) == 2 * math.prod(shape) * DTYPES[type_.dtype].itemsize, kind
    return type_, np.frombuffer(bytes.fromhex(data), DTYPES[type_.dtype]).reshape(shape)


def _closed(program: Program, captured: list[tuple[TensorType, np.ndarray]]) -> Program:
    """The Program with these arrays as constants in the place of its first inputs."""
    refs = [constant_ref(array, type_) for type_, array in captured]
    first, rest = program.inputs[: len(refs)], program.inputs[len(refs) :]
    constants = [Equation("constant", (), (v,), {"ref": ref}) for v, ref in zip(first, refs, strict=True)]
    data = {ref: array for ref, (_, array) in zip(refs, captured, strict=True)}
    return Program(program.name, rest, (*constants, *program.equations), program.outputs, data)
