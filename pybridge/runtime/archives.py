"""Programs saved to files and loaded from them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..errors import (
    ArchiveError,
    ArgumentError,
    ProgramSyntaxError,
    ProgramTypeError,
    UnsupportedPrimitive,
)
from ..ir import archive
from ..ir.program import Program
from .requests import ask

if TYPE_CHECKING:
    from ..ir.structure import Structure


def save(path: str | os.PathLike[str], program: Program) -> None:
    """Writes a Program to a file, with its constants, its derivative rules, and how its values are grouped.

    Julia reads it too (`JaxprAD.load`), without Python. The file appears whole or not at all, in the place of
    one that is there. It holds no code: of classes in arguments and results it has names, those that
    `jax.export.register_pytree_node_serialization` and `register_namedtuple_serialization` gave them.

    Raises ArchiveError for a class without such a name, and where data of constants are not at hand.
    """
    if not isinstance(program, Program):
        raise ArgumentError(f"save writes a Program, as pb.trace(f)(*args) makes them, not {program!r}")
    archive.write(path, program, _stored(path, program))


def _stored(path: str | os.PathLike[str], program: Program) -> Structure | None:
    if program.structure is None:
        return None
    from ..frontend.stored_structures import stored  # imports JAX, which Programs do without

    try:
        return stored(program.structure)
    except ArchiveError as e:
        raise ArchiveError(f"{os.fspath(path)}: {e}", path=path) from None


def load(path: str | os.PathLike[str]) -> Program:
    """The Program in a file that `save` has written, or Julia's `JaxprAD.save`.

    It runs as the one that was saved: `call`, `to_jax`, `vjp`, `pb.export`. Of an array that Julia saved,
    the order of indices is reversed.

    Raises ArchiveError for what is no archive, is damaged, or of a newer pybridge; its types are checked by
    Julia's rules, as `pb.parse` does.
    """
    program, structure = archive.read(path)
    try:
        ask("check", program)
        structure = _restored(structure)
    except (ArchiveError, ProgramSyntaxError, ProgramTypeError, UnsupportedPrimitive) as e:
        raise ArchiveError(f"{os.fspath(path)}: {e}", path=path) from e
    return program.with_structure(structure)


def _restored(structure: Structure | None) -> Structure | None:
    if structure is None:
        return None
    from ..frontend.stored_structures import restored

    return restored(structure)
