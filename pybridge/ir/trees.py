"""How a saved Program's arguments and results are grouped, in a form of no language (docs/archive.md).

    line     := {"arguments": [[name, "position" | "keyword", tree]...], "result": result}
    result   := [name, tree] | {"tuple": [result...]}
    tree  := "*" | null | {"known": value} | {"tuple": [tree...]} | {"list": [tree...]}
           | {"dict": [[key, tree]...]}
           | {"record": name, "fields": [word...] | null, "data": hexadecimal digits, "parts": [tree...]}
    value := an integer of 64 bits | true | false | a string
    key   := an integer of 64 bits | a string       all of one kind, ascending

Files of version 1 have {"arguments": [tree...], "keywords": [[word, tree]...], "result": tree}.

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
from .structure import Argument, Part, Result, Structure, unique

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


def leaf_count(tree: Tree) -> int:
    return 1 if isinstance(tree, Leaf) else sum(map(leaf_count, parts(tree)))


def parts(tree: Tree) -> tuple[Tree, ...]:
    return tree.parts if isinstance(tree, Group | Keyed | Record) else ()


def _depth(tree: Tree) -> int:
    return 1 + max(map(_depth, parts(tree)), default=0)


# Text


def to_text(structure: Structure | None, version: int) -> str:
    """One line; that of None is `null`: the Program takes and gives arrays in a row."""
    if structure is None:
        return "null"
    depths = [_depth(part.tree) for part in (*structure.arguments, *structure.results)]
    if max([*depths, _nesting(structure.result)]) > MAX_DEPTH:
        raise ArchiveError(f"arguments and results nest at most {MAX_DEPTH} deep in a file")
    form = _form_of_version_1(structure) if version == 1 else _form_of(structure)
    return json.dumps(form, ensure_ascii=False, separators=(",", ":"))


def _nesting(result: Result) -> int:
    return 0 if isinstance(result, Part) else 1 + max(map(_nesting, result), default=0)


def _form_of(structure: Structure) -> Any:
    arguments = [[a.name, "keyword" if a.keyword else "position", _form(a.tree)] for a in structure.arguments]
    return {"arguments": arguments, "result": _result_form(structure.result)}


def _result_form(result: Result) -> Any:
    if isinstance(result, Part):
        return [result.name, _form(result.tree)]
    return {"tuple": list(map(_result_form, result))}


def _form_of_version_1(structure: Structure) -> Any:
    (result,) = structure.results
    return {
        "arguments": [_form(a.tree) for a in structure.arguments if not a.keyword],
        "keywords": [[a.name, _form(a.tree)] for a in structure.arguments if a.keyword],
        "result": _form(result.tree),
    }


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


def from_text(text: str, version: int) -> Structure | None:
    """Raises ProgramSyntaxError where the text is not the one that `to_text` makes of a structure."""
    read = _structure_of_version_1 if version == 1 else _structure
    try:
        form = json.loads(text)
        structure = None if form is None else read(form)
        same = to_text(structure, version) == text
    except (ArchiveError, ValueError, TypeError, KeyError, RecursionError):
        same = False
    if not same:
        raise ProgramSyntaxError(f"{_beginning(text)} is no description of arguments and results")
    return structure


def _beginning(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:40]}...")


def _structure(form: Any) -> Structure:
    arguments = [
        Argument(_name(name), _tree(tree, 1), {"position": False, "keyword": True}[how])
        for name, how, tree in form["arguments"]
    ]
    if len({a.name for a in arguments}) < len(arguments):
        raise ValueError
    return Structure(tuple(arguments), _result(form["result"], 0))


def _result(form: Any, depth: int) -> Result:
    if depth > MAX_DEPTH:
        raise ValueError
    match form:
        case [name, tree]:
            return Part(_name(name), _tree(tree, 0))
        case {"tuple": list(forms)}:
            return tuple(_result(part, depth + 1) for part in forms)
    raise ValueError


def _name(form: Any) -> str:
    if not isinstance(form, str) or not form:
        raise ValueError
    return checked_string(form)


def _structure_of_version_1(form: Any) -> Structure:
    """Its arguments have no names, and get the names of variables."""
    positional = _trees(form["arguments"], 0)
    keywords = _tree({"dict": form["keywords"]}, 0)
    if not isinstance(keywords, Keyed) or not all(isinstance(key, str) for key in keywords.keys):
        raise ValueError
    taken = set(map(str, keywords.keys))
    arguments = [Argument(unique(f"x{i}", taken), tree) for i, tree in enumerate(positional)]
    arguments += [
        Argument(str(key), tree, True) for key, tree in zip(keywords.keys, keywords.parts, strict=True)
    ]
    return Structure(tuple(arguments), Part("result", _tree(form["result"], 0)))


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
