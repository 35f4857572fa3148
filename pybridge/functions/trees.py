"""pytrees as Julia sees them: tuples for lists and tuples, named tuples for dicts and Python's named tuples.

The text of a tree, words separated by spaces: `( a b )`, `{ key a key b }`, `none`, `f64[2,3]` for a leaf.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import jax
from jax.tree_util import default_registry

from ..errors import ArgumentError
from ..ir.numerals import dtype_name
from ..ir.types import TensorType

_NAME = re.compile(r"[^\W\d]\w*!?")


def types_of(tree: Any) -> Any:
    """The tree with the TensorType of each array or ShapeDtypeStruct at its leaves."""
    return jax.tree.map(_type, tree)


def _type(leaf: Any) -> TensorType:
    if isinstance(leaf, TensorType):
        return leaf
    if not hasattr(leaf, "shape") or not hasattr(leaf, "dtype"):
        raise ArgumentError(f"arrays and numbers can go to Julia, not {type(leaf).__name__} ({leaf!r:.60})")
    name = dtype_name(leaf.dtype)
    if name is None:
        raise ArgumentError(f"arrays of {leaf.dtype} cannot go to Julia")
    if not all(isinstance(n, int) for n in leaf.shape):
        raise ArgumentError(f"Julia functions take arrays of known sizes, not of shape {leaf.shape}")
    return TensorType(name, tuple(leaf.shape))


def text(tree: Any) -> str:
    """The text of a tree of TensorTypes."""
    return " ".join(_words(tree))


def _words(tree: Any) -> Iterable[str]:
    if isinstance(tree, TensorType):
        return [str(tree)]
    if tree is None:
        return ["none"]
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return _named(zip(tree._fields, tree, strict=True))
    level = default_registry.flatten_one_level(tree)
    if level is None:
        raise ArgumentError(f"{type(tree).__name__} is no pytree")
    if isinstance(tree, dict):
        return _named(zip(level[1], level[0], strict=True))
    return ["(", *(word for child in level[0] for word in _words(child)), ")"]


def _named(items: Iterable[tuple[Any, Any]]) -> list[str]:
    words = ["{"]
    for key, child in items:
        if not isinstance(key, str) or not _NAME.fullmatch(key):
            raise ArgumentError(f"{key!r} is not a name that a Julia NamedTuple can have")
        words += [key, *_words(child)]
    return [*words, "}"]


def read(source: str) -> Any:
    """The tree of TensorTypes of a text of Julia's: tuples, dicts and None."""
    tree, rest = _read(source.split())
    assert not rest, source
    return tree


def _read(words: list[str]) -> tuple[Any, list[str]]:
    head, rest = words[0], words[1:]
    if head == "none":
        return None, rest
    if head == "(":
        items = []
        while rest[0] != ")":
            item, rest = _read(rest)
            items.append(item)
        return tuple(items), rest[1:]
    if head == "{":
        fields = {}
        while rest[0] != "}":
            key = rest[0]
            fields[key], rest = _read(rest[1:])
        return fields, rest[1:]
    dtype, _, shape = head.rstrip("]").partition("[")
    return TensorType(dtype, tuple(int(n) for n in shape.split(",") if n)), rest
