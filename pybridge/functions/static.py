"""Static arguments of Julia functions: values that Julia code has as constants, and JAX never sees.

The function with some of its arguments fixed is another Julia function, written behind the user's source. Its
name goes into the message of an error; lines and everything else are the user's.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..frontend.static_arguments import Fixed
from .call import Function
from .source import Source

_NAME = re.compile(r"[^\W\d][\w!]*(\.[^\W\d][\w!]*)*")
_SUFFIX = "_with_static_arguments"
_INTEGERS = range(-(2**63), 2**63)


def is_fixed(function: Function) -> bool:
    """Whether `fix` has made it of another function."""
    return function.name.endswith(_SUFFIX)


def fix(function: Function, fixed: Fixed, count: int) -> Function:
    """The function of the other arguments; `count` is how many it has by position, static ones included.

    Raises ArgumentError for values that Julia code cannot have as constants.
    """
    if not fixed.positional and not fixed.named:
        return function
    return _fix(function, fixed, count)


@functools.lru_cache(maxsize=1024)
def _fix(function: Function, fixed: Fixed, count: int) -> Function:
    place = _place(function)
    values = {i: literal(value.value, f"argument {i}") for i, value in fixed.positional}
    named = [f"{name} = {literal(value.value, f'argument {name}')}" for name, value in fixed.named]
    keywords = f"; {', '.join(named)}" if named else ""
    lines = [_call(function, place, values, count, keywords)]
    if function.jvp:
        tuples = [_tuple(_filled(x, values, count, by)) for x, by in (("x", None), ("t", "nothing"))]
        lines.append(f"{_new(function.jvp)}(x, t) = {place}{function.jvp}({', '.join(tuples)}{keywords})")
    if function.vjp:
        all_ = f"{place}{function.vjp}({_tuple(_filled('x', values, count))}, ct{keywords})"
        kept = _tuple(f"c[{i + 1}]" for i in range(count) if i not in values)
        lines.append(f"{_new(function.vjp)}(x, ct) = (c = {all_}; {kept})")
    return dataclasses.replace(
        function,
        name=_new(function.name),
        source=_source(function.source, lines),
        jvp=function.jvp and _new(function.jvp),
        vjp=function.vjp and _new(function.vjp),
        # Which layouts the user's function has methods for, Julia would have to ask that one.
        inputs="copy" if function.inputs == "auto" else function.inputs,
    )


def _call(function: Function, place: str, values: dict[int, str], count: int, keywords: str) -> str:
    names = [f"x{i + 1}" for i in range(count)]
    out = ["out"] if function.inplace else []
    parameters = [*out, *(x for i, x in enumerate(names) if i not in values)]
    arguments = [*out, *(values.get(i, x) for i, x in enumerate(names))]
    head = f"{_new(function.name)}({', '.join(parameters)})"
    return f"{head} = {place}{function.name}({', '.join(arguments)}{keywords})"


def _filled(x: str, values: dict[int, str], count: int, static: str | None = None) -> list[str]:
    """All arguments: elements of the tuple `x` of dynamic ones, and the static ones, or `static` for each."""
    dynamic = iter(range(1, count + 1))
    return [static or values[i] if i in values else f"{x}[{next(dynamic)}]" for i in range(count)]


def _tuple(elements: Iterable[str]) -> str:
    return f"({''.join(element + ', ' for element in elements)})"


def _new(name: str) -> str:
    return name.replace(".", "_") + _SUFFIX


def _place(function: Function) -> str:
    """What the new function's module has in front of the names of the user's."""
    names = [name for name in (function.name, function.jvp, function.vjp) if name]
    for name in names:
        if not _NAME.fullmatch(name):
            raise ArgumentError(
                f"{name} is no plain name: with static arguments, write a function that calls it"
            )
    source = function.source
    if source.kind == "object":
        raise ArgumentError(
            "a Julia object has no static arguments: they need the name of a function, and source="
        )
    return {"main": "Main.", "package": f"{source.word}."}.get(source.kind, "")


def _source(source: Source, lines: Sequence[str]) -> Source:
    if source.kind == "package":
        lines = [f"import {source.word.partition('.')[0]}", *lines]
    code = "\n".join([source.code, *lines] if source.code else lines)
    kind = source.kind if source.kind in ("file", "code") else "code"
    return Source(kind, source.word if kind == "file" else "", code, of_process=source.kind == "main")


def literal(value: Any, what: str) -> str:
    """The value as Julia code."""
    if isinstance(value, np.integer | np.bool_):
        value = value.item()
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and value in _INTEGERS:
        return f"({value})" if value > _INTEGERS[0] else "typemin(Int64)"
    if isinstance(value, float):
        return f"({value!r})" if math.isfinite(value) else _NOT_FINITE[str(value)]
    if isinstance(value, complex):
        return f"complex({literal(value.real, what)}, {literal(value.imag, what)})"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, tuple):
        return _tuple(literal(element, what) for element in value)
    raise ArgumentError(
        f"{what} is static and a {type(value).__name__} ({value!r:.60}); a Julia function takes integers of "
        "64 bits, floats, bools, complex numbers, strings, None and tuples of them as static arguments"
    )


_NOT_FINITE = {"inf": "Inf", "-inf": "(-Inf)", "nan": "NaN"}


def _text(value: str) -> str:
    """A string of Julia's: what could mean something else there is written by its number."""
    return '"' + "".join(c if c.isalnum() or c in " _-." else f"\\U{ord(c):08x}" for c in value) + '"'
