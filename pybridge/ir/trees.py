"""How a saved Program's arguments and results are grouped, in a form of no language (docs/archive.md).

    tree  := "*" | null | {"known": value} | {"tuple": [tree...]} | {"list": [tree...]}
           | {"dict": [[key, tree]...]}
           | {"record": name, "fields": [word...] | null, "data": hexadecimal digits, "parts": [tree...]}
    value := an integer of 64 bits | true | false | a string
    key   := an integer of 64 bits | a string       all of one kind, ascending

Both languages write the same tree as the same text, and read no other text of it.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import ArchiveError, ProgramSyntaxError
from .program import checked_string

MAX_DEPTH = 100
"""As deep as trees nest; julia/src/archive/trees.jl has the same."""


@dataclass(frozen=True)
class Leaf:
    """An array or a number: an input or an output of the Program."""


@dataclass(frozen=True)
class Known:
    """What is no part of the Program's values: None, and what a Julia function was traced for."""

    value: int | bool | str | None = None


@dataclass(frozen=True)
class Group:
    """kind: `tuple` or `list`."""

    kind: str
    parts: tuple[Tree, ...]


@dataclass(frozen=True)
class Keyed:
    """A dict, or a named tuple of Julia's."""

    keys: tuple[int | str, ...]
    parts: tuple[Tree, ...]


@dataclass(frozen=True)
class Record:
    """An object of a class that both ends know by name. data: what of it is no part."""

    name: str
    fields: tuple[str, ...] | None
    data: bytes
    parts: tuple[Tree, ...]


Tree = Leaf | Known | Group | Keyed | Record


@dataclass(frozen=True)
class Signature:
    """The arguments by position and by keyword, and the result."""

    arguments: tuple[Tree, ...]
    keywords: Keyed
    result: Tree


def leaf_count(tree: Tree) -> int:
    return 1 if isinstance(tree, Leaf) else sum(map(leaf_count, parts(tree)))


def parts(tree: Tree) -> tuple[Tree, ...]:
    return tree.parts if isinstance(tree, Group | Keyed | Record) else ()


def _depth(tree: Tree) -> int:
    return 1 + max(map(_depth, parts(tree)), default=0)


# Text


def to_text(signature: Signature | None) -> str:
    """One line; that of None is `null`: the Program takes and gives arrays in a row."""
    if signature is None:
        return "null"
    if max(map(_depth, (*signature.arguments, signature.keywords, signature.result))) > MAX_DEPTH:
        raise ArchiveError(f"arguments and results nest at most {MAX_DEPTH} deep in a file")
    form = {
        "arguments": list(map(_form, signature.arguments)),
        "keywords": _form(signature.keywords)["dict"],
        "result": _form(signature.result),
    }
    return json.dumps(form, ensure_ascii=False, separators=(",", ":"))


def _form(tree: Tree) -> Any:
    inner = list(map(_form, parts(tree)))
    match tree:
        case Leaf():
            return "*"
        case Known(value=value):
            return None if value is None else {"known": value}
        case Group(kind=kind):
            return {kind: inner}
        case Keyed(keys=keys):
            return {"dict": [list(pair) for pair in zip(keys, inner, strict=True)]}
        case Record(name=name, fields=fields, data=data):
            names = None if fields is None else list(fields)
            return {"record": name, "fields": names, "data": data.hex(), "parts": inner}


def from_text(text: str) -> Signature | None:
    """Raises ProgramSyntaxError where the text is not the one that `to_text` makes of a signature."""
    try:
        signature = _signature(json.loads(text))
        same = to_text(signature) == text
    except (ValueError, TypeError, KeyError, RecursionError):
        same = False
    if not same:
        raise ProgramSyntaxError(f"{_beginning(text)} is no description of arguments and results")
    return signature


def _beginning(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:40]}...")


def _signature(form: Any) -> Signature | None:
    if form is None:
        return None
    if not isinstance(form, dict) or form.keys() != {"arguments", "keywords", "result"}:
        raise ValueError
    keywords = _tree({"dict": form["keywords"]}, 0)
    if not isinstance(keywords, Keyed) or not all(isinstance(key, str) for key in keywords.keys):
        raise ValueError
    return Signature(_trees(form["arguments"], 0), keywords, _tree(form["result"], 0))


def _trees(forms: Any, depth: int) -> tuple[Tree, ...]:
    if not isinstance(forms, list):
        raise ValueError
    return tuple(_tree(form, depth + 1) for form in forms)


def _tree(form: Any, depth: int) -> Tree:
    if depth > MAX_DEPTH:
        raise ValueError
    match form:
        case "*":
            return Leaf()
        case None:
            return Known()
        case {"known": value}:
            return Known(_word(value))
        case {"tuple": forms}:
            return Group("tuple", _trees(forms, depth))
        case {"list": forms}:
            return Group("list", _trees(forms, depth))
        case {"dict": pairs}:
            keys = tuple(_key(key) for key, _ in pairs)
            return Keyed(checked_keys(keys), _trees([form for _, form in pairs], depth))
        case {"record": str(name), "fields": fields, "data": str(data), "parts": forms}:
            return _record(name, fields, data, _trees(forms, depth))
    raise ValueError


def _record(name: str, fields: Any, data: str, inner: tuple[Tree, ...]) -> Record:
    if fields is not None and (
        not isinstance(fields, list)
        or len(fields) != len(inner)
        or not all(isinstance(f, str) for f in fields)
    ):
        raise ValueError
    names = None if fields is None else tuple(map(checked_string, fields))
    return Record(checked_string(name), names, bytes.fromhex(data), inner)


def _word(value: Any) -> int | bool | str:
    if isinstance(value, str):
        return checked_string(value)
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        return value
    raise ValueError


def _key(key: Any) -> int | str:
    if isinstance(key, bool):
        raise ValueError
    return _word(key)


def checked_keys(keys: Sequence[int | str]) -> tuple[int | str, ...]:
    """The keys, all of one kind and ascending. Raises ValueError or TypeError where they are not."""
    if any(not a < b for a, b in itertools.pairwise(keys)):  # type: ignore[operator]
        raise ValueError("the keys of a dict are not in order")
    return tuple(keys)
