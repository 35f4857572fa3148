"""Printing Programs, byte for byte as docs/program.md says; `parser.py` reads what is printed here."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from .numerals import format_float
from .schema import OPERATIONS
from .types import SymDim, Value

if TYPE_CHECKING:
    from .program import Equation, Program

VERSION = 1
"""Of the text, in its first line."""

RESERVED = frozenset({"true", "false", "none", "inf", "nan"})
"""Words that are values, and names of nothing."""

_WIDTH = 100
"""Of comments."""

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


Names = tuple[Sequence[str], Sequence[str]]
"""Of the inputs and of the outputs."""


def format_program(program: Program, names: Names | None = None) -> str:
    """The canonical text, sources included, with the version line and a final newline.

    names: stand in comments, which are no part of the canonical text.
    """
    lines = [f"pybridge {VERSION}"]
    _body(program, f"program {program.name or 'main'}", "", "", lines, sources=True)
    if names is not None:
        inputs, outputs = names
        lines[-2] += f"  # {', '.join(outputs)}" if outputs else ""
        lines[2:2] = _comment([f"{v} {name}" for v, name in zip(program.inputs, inputs, strict=True)])
    return "\n".join(lines) + "\n"


def _comment(words: Sequence[str]) -> list[str]:
    """The words with commas between, in lines of a width that can be read."""
    lines: list[str] = []
    for word in words:
        if lines and len(lines[-1]) + len(word) < _WIDTH:
            lines[-1] += f", {word}"
        else:
            lines[-1:] = [f"{line}," for line in lines[-1:]]
            lines.append(f"  # {word}")
    return lines


def format_body(program: Program) -> str:
    """The canonical text of the content alone: no version, name or sources."""
    lines: list[str] = []
    _body(program, "", "", "", lines, sources=False)
    return "\n".join(lines)


def format_equation(eq: Equation) -> str:
    """One equation as it stands in the canonical text, its own source left out, those of its bodies kept."""
    lines: list[str] = []
    _equation(replace(eq, source=""), "", lines, sources=True)
    return "\n".join(lines)


def _binders(variables) -> str:
    return ", ".join(f"%{v.id}: {v.type}" for v in variables)


def _body(program: Program, before: str, after: str, indent: str, lines: list[str], sources: bool) -> None:
    """Appends the lines of a body; `before` stands ahead of its parameters, `after` behind its last brace."""
    lines.append(f"{indent}{before}({_binders(program.inputs)}) {{")
    for eq in program.equations:
        _equation(eq, indent + "  ", lines, sources)
    lines.append(" ".join([f"{indent}  return", *map(str, program.outputs)]))
    lines.append(f"{indent}}}{after}")


def _equation(eq: Equation, indent: str, lines: list[str], sources: bool) -> None:
    line = " ".join([f"{_binders(eq.outputs)} = {eq.op}", *map(str, eq.inputs)])
    if eq.attrs:
        # Pieces of text and bodies in turn: the text before a body is the beginning of that body's first
        # line, and the text after it continues its last.
        pieces = list(_attribute_pieces(eq))
        line += " {"
        for piece in pieces:
            if isinstance(piece, str):
                line += piece
            else:
                line = _place_body(piece, line, indent, lines, sources)
        line += "}"
    source = f"  # {eq.source}" if sources and eq.source else ""
    lines.append(f"{indent}{line}{source}")


def _place_body(body: Program, before: str, indent: str, lines: list[str], sources: bool) -> str:
    _body(body, before, "", indent, lines, sources)
    return lines.pop()[len(indent) :]


def _attribute_pieces(eq: Equation) -> Iterator[str | Program]:
    for i, name in enumerate(_in_print_order(eq)):
        yield (", " if i else "") + name + "="
        yield from _value_pieces(eq.attrs[name])


def _in_print_order(eq: Equation) -> list[str]:
    known = OPERATIONS[eq.op].attributes if eq.op in OPERATIONS else ()
    return [*(k for k in known if k in eq.attrs), *sorted(k for k in eq.attrs if k not in known)]


def _value_pieces(value: Value) -> Iterator[str | Program]:
    match value:
        case tuple():
            yield "["
            for i, element in enumerate(value):
                if i:
                    yield ", "
                yield from _value_pieces(element)
            yield "]"
        case None:
            yield "none"
        case bool():
            yield "true" if value else "false"
        case int() | SymDim():
            yield str(value)
        case float():
            yield format_float(value)
        case str():
            bare = _WORD.fullmatch(value) and value not in RESERVED
            yield value if bare else json.dumps(value, ensure_ascii=False)
        case _:  # a nested Program
            yield value
