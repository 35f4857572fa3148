"""The structures of derivative Programs, by those of what they are derived from.

`x_dot` is the tangent of `x`, `x_bar` its cotangent, `ct` the cotangent of the result. They have the tree of
what they belong to, with None for each leaf that has none, and for a whole part without any.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

import jax
from jax.tree_util import PyTreeDef, default_registry

from ..ir.structure import Argument, Part, Result, Structure, unique
from .structures import result_tree

Mask = Sequence[bool]

_NONE = jax.tree.structure(None)


def jvp(of: Structure, active: Mask, inexact: Mask) -> Structure:
    """The arguments, then the tangents of the active; the result and its tangent. inexact: of the outputs."""
    tangents = _tangents(of.arguments, active, _names(of.arguments))
    return Structure((*of.arguments, *tangents), (of.result, _restricted(of.result, inexact, "_dot")))


def vjp(of: Structure, active: Mask, inexact: Mask, value: bool) -> Structure:
    """The arguments, then `ct`; a tuple with a cotangent for each argument, behind the result if `value`."""
    cotangent = _cotangent(of.result, inexact, _names(of.arguments))
    cotangents = _cotangents(of.arguments, active)
    return Structure((*of.arguments, cotangent), (of.result, cotangents) if value else cotangents)


def known(of: Structure, residuals: int) -> Structure:
    """The first part of a linearization gives the result and a tuple of residuals."""
    return Structure(of.arguments, (of.result, _residuals(residuals)))


def linear(of: Structure, active: Mask, has_tangent: Mask, residuals: int) -> Structure:
    """The second takes that tuple and the tangents of the active arguments."""
    first = _residuals(residuals)
    tangents = _tangents(of.arguments, active, {first.name})
    return Structure((first, *tangents), _restricted(of.result, has_tangent, "_dot"))


def transpose(of: Structure, linear: Mask, given: Mask) -> Structure:
    """The arguments that are not linear, then `ct`; a tuple with a cotangent for each argument."""
    others = tuple(
        Argument(a.name, _kept(a.tree, [not chosen for chosen in mask]), a.keyword)
        for a, mask in _each(of.arguments, linear)
        if not all(mask)
    )
    return Structure(
        (*others, _cotangent(of.result, given, _names(others))), _cotangents(of.arguments, linear)
    )


def _names(arguments: Sequence[Argument]) -> set[str]:
    return {a.name for a in arguments}


def _residuals(count: int) -> Argument:
    return Argument("residuals", jax.tree.structure((0,) * count))


def _tangents(arguments: Sequence[Argument], active: Mask, taken: set[str]) -> list[Argument]:
    return [
        Argument(unique(f"{a.name}_dot", taken), _kept(a.tree, mask), a.keyword)
        for a, mask in _each(arguments, active)
        if any(mask)
    ]


def _cotangents(arguments: Sequence[Argument], active: Mask) -> Result:
    names = _names(arguments)
    return tuple(Part(_bar(a.name, names), _kept(a.tree, mask)) for a, mask in _each(arguments, active))


def _bar(name: str, names: set[str]) -> str:
    """That of `x_dot` is `x_bar` in a Program of tangents alone: what its transpose gives belongs to x."""
    stem = name.removesuffix("_dot")
    return f"{name if stem in names else stem}_bar"


def _cotangent(result: Result, given: Mask, taken: set[str]) -> Argument:
    return Argument(unique("ct", taken), result_tree(_restricted(result, given, "")))


def _restricted(result: Result, kept: Mask, suffix: str) -> Result:
    """Values that belong to those outputs that are kept, with the suffix behind the parts' names."""
    rest = iter(kept)

    def restricted(of: Result) -> Result:
        if isinstance(of, tuple):
            return tuple(map(restricted, of))
        return Part(f"{of.name}{suffix}", _kept(of.tree, list(islice(rest, of.tree.num_leaves))))

    return restricted(result)


def _each(parts: Sequence[Argument], mask: Mask) -> Iterator[tuple[Argument, list[bool]]]:
    rest = iter(mask)
    for part in parts:
        yield part, list(islice(rest, part.tree.num_leaves))


def _kept(tree: Any, mask: Mask) -> Any:
    """The tree with None for the leaves that are not kept; None where none is.

    It is made without the user's code, which may not expect None.
    """
    if not any(mask):
        return _NONE
    if all(mask):
        return tree
    rest = iter(mask)

    def kept(of: Any) -> Any:
        node = of.node_data()
        if node is None:
            return of if next(rest) else _NONE
        return _build(default_registry, node, list(map(kept, of.children())))

    return kept(tree)


_build: Callable[..., Any] = PyTreeDef.from_node_data_and_children
