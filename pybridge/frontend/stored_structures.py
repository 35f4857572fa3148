"""Trees of JAX as those that files have, and back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax

from ..errors import ArchiveError
from ..ir.structure import Structure
from ..ir.trees import Group, Keyed, Known, Leaf, Record, Tree, checked_keys
from .adapter import internals

_ADVICE = (
    "jax.export.register_pytree_node_serialization and register_namedtuple_serialization give a class the "
    "name that stands for it in files"
)


def stored(structure: Structure) -> Structure:
    """With the trees of files. Raises ArchiveError for a class that has no name in files."""
    return structure.mapped(_tree)


def restored(structure: Structure) -> Structure:
    """With JAX's trees. Raises ArchiveError for a name that no class has here.

    What Julia knew while it traced is no argument here, and None inside of one.
    """
    arguments = tuple(a for a in structure.arguments if not _is_fixed(a.tree))
    return replace(structure, arguments=arguments).mapped(lambda tree: jax.tree.structure(_example(tree)))


def _is_fixed(tree: Tree) -> bool:
    return isinstance(tree, Known) and tree.value is not None


def _tree(structure: Any) -> Tree:
    node = structure.node_data()
    if node is None:
        return Leaf()
    kind, data = node
    if kind is type(None):
        return Known()
    parts = tuple(map(_tree, structure.children()))
    if kind in (tuple, list):
        return Group(kind.__name__, parts)
    if kind is dict:
        return Keyed(_keys(data), parts)
    return _record(kind, data, parts)


def _keys(keys: Any) -> tuple[int | str, ...]:
    for kind in (str, int):
        if all(type(key) is kind for key in keys):
            try:
                return checked_keys(keys)
            except (TypeError, ValueError):
                break
    raise ArchiveError(f"a dict in a file has words for keys, or numbers: not {', '.join(map(repr, keys))}")


def _record(kind: type, data: Any, parts: tuple[Tree, ...]) -> Record:
    name, write = internals.node_writers.get(kind, (None, None))
    if name is None:
        raise ArchiveError(f"{kind.__name__} is a class that files do not know: {_ADVICE}")
    return Record(name, getattr(kind, "_fields", None), bytes(write(data)), parts)


def _example(tree: Tree) -> Any:
    """A value of that structure, with 0 for its leaves."""
    match tree:
        case Leaf():
            return 0
        case Known():
            return None
        case Group(kind="tuple", parts=parts):
            return tuple(map(_example, parts))
        case Group(parts=parts):
            return list(map(_example, parts))
        case Keyed(keys=keys, parts=parts):
            return dict(zip(keys, map(_example, parts), strict=True))
    return _registered(tree)


def _registered(tree: Record) -> Any:
    if tree.name not in internals.node_readers:
        raise ArchiveError(f"it has values of a class {tree.name!r}, which is not known here: {_ADVICE}")
    kind, read, build = internals.node_readers[tree.name]
    parts = tuple(map(_example, tree.parts))
    try:
        return build(read(tree.data), parts)
    except Exception as e:  # the user's code, on what another program has written
        raise ArchiveError(f"{kind.__name__} cannot be made of what the file has of it: {e}") from e
