"""Files of Programs, which Python and Julia write and read alike: docs/archive.md has them byte by byte.

Nothing of a file is ever run, and no more memory is taken than the file is long. The checksum in its head is
that of the head and the text, and the text refers to large constants by their hashes: all bytes are checked.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import struct
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from ..distribution import NAME
from ..errors import ArchiveError, ProgramTypeError, PyBridgeError
from . import trees
from .deferred import expanded
from .numerals import DTYPES
from .parser import parse
from .program import Program, constant_ref
from .structure import Structure
from .types import TensorType

MARK = b"\x89PBA\r\n\x1a\n"
"""As PNG's: what takes a file for text and changes its ends of lines, or bit 7, changes this."""
VERSION = 2
"""That is written; all up to it are read."""
NEEDS = b"0.1.0"
"""The oldest pybridge that reads what this one writes. It stands in the file, for those that do not."""
ALIGNMENT = 64
"""Of constants in the file: that of caches' lines, so that they can be used where they lie."""

_HEAD = struct.Struct("<8sI20sQQ")  # mark, version, NEEDS, bytes of the text, bytes of the file
_CHECKSUM = 32
_START = _HEAD.size + _CHECKSUM  # of the text
_START_OF_ALL_VERSIONS = struct.Struct("<8sI20s")

Path_ = str | os.PathLike[str]


def write(path: Path_, program: Program, structure: Structure | None) -> None:
    """Writes the Program with its derivative rules and constants. The file appears whole or not at all.

    Raises ArchiveError where data of its constants are not at hand, and OSError.
    """
    whole = expanded(program)
    with _naming(path):
        types = _constant_types(whole)
        if missing := types.keys() - whole.constants.keys():
            raise ArchiveError(
                f"the data of the constant {min(missing)} are not at hand: give them to `pb.parse`, or parse "
                "what `to_text` writes"
            )
        text = f"{trees.to_text(structure, VERSION)}\n{whole.text}".encode()
    places, size = _places(types, len(text))
    head = _HEAD.pack(MARK, VERSION, NEEDS, len(text), size)
    with _replaced(Path(path)) as unfinished, unfinished.open("xb") as file:
        file.write(head + _checksum(head, text) + text)
        for ref, place in places.items():
            file.write(bytes(place - file.tell()))
            data = np.ascontiguousarray(whole.constants[ref], DTYPES[types[ref].dtype])
            file.write(data.reshape(-1).view(np.uint8).data)


@contextlib.contextmanager
def _replaced(path: Path) -> Iterator[Path]:
    """A new file next to `path`, which replaces it in the end."""
    place = path.resolve()  # a link stays one
    unfinished = place.with_name(f"{place.name}.{uuid.uuid4().hex}.part")
    try:
        yield unfinished
        os.replace(unfinished, place)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def read(path: Path_) -> tuple[Program, Structure | None]:
    """Raises ArchiveError for what is not a whole archive of a version that is known, and OSError."""
    with _naming(path):
        return _read(Path(path))


@contextlib.contextmanager
def _naming(path: Path_) -> Iterator[None]:
    """Errors say which file they are about."""
    try:
        yield
    except PyBridgeError as e:
        raise ArchiveError(f"{os.fspath(path)}: {e}", path=path) from e


def _read(path: Path) -> tuple[Program, Structure | None]:
    with path.open("rb") as file:
        head = file.read(_START)
        version, length, size = _lengths(head, os.fstat(file.fileno()).st_size)
        rest = file.read(size - _START)
    if len(rest) != size - _START:
        raise ArchiveError("it is being written by another process")
    text = rest[:length]
    if head[_HEAD.size :] != _checksum(head[: _HEAD.size], text):
        raise ArchiveError("it is damaged: its checksum is another")
    return _contents(version, text, rest)


def _lengths(head: bytes, found: int) -> tuple[int, int, int]:
    """The version, and the bytes of the text and of the file, by its head; `found` is how long it is."""
    if head[: len(MARK)] != MARK:
        raise ArchiveError("it is no archive of pybridge")
    if len(head) >= _START_OF_ALL_VERSIONS.size:
        _, version, needs = _START_OF_ALL_VERSIONS.unpack_from(head)
        if not 1 <= version <= VERSION:
            raise ArchiveError(_other_version(version, needs))
    if len(head) < _START:
        raise ArchiveError(f"it is cut off after {len(head)} bytes")
    _, version, _, length, size = _HEAD.unpack_from(head)
    if found < size:
        raise ArchiveError(f"it is cut off after {found} of {size} bytes")
    if found > size:
        raise ArchiveError(f"it is damaged: it has {found} bytes, and {size} by its head")
    if length > size - _START:
        raise ArchiveError("it is damaged: its text is longer than it")
    return version, length, size


def _other_version(version: int, needs: bytes) -> str:
    name = needs.rstrip(b"\0").decode("ascii", "replace")
    if version == 0 or not all(c.isalnum() or c in ".+-" for c in name):
        return f"it is damaged: there is no version {version}"
    wanted = f"pybridge {name}" if name else "a newer pybridge"
    return (
        f"it is of version {version}, and this pybridge reads versions up to {VERSION}: it takes {wanted} or "
        f"newer, pip install --upgrade {NAME}"
    )


def _checksum(head: bytes, text: bytes) -> bytes:
    return hashlib.sha256(head + text).digest()


def _decoded(text: bytes) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError:
        raise ArchiveError("its text is no UTF-8") from None


def _contents(version: int, text: bytes, rest: bytes) -> tuple[Program, Structure | None]:
    description, _, program_text = _decoded(text).partition("\n")
    structure = trees.from_text(description, version)
    program = parse(program_text)
    types = _constant_types(program)
    places, size = _places(types, len(text))
    if size != len(rest) + _START:
        raise ArchiveError("it is damaged: its constants have other sizes than it has room for")
    data, end = {}, len(text)
    for ref, place in places.items():
        data[ref], start = _constant(rest, place - _START, ref, types[ref]), end
        end = place - _START + data[ref].nbytes
        if any(rest[start : place - _START]):
            raise ArchiveError("it is damaged: there is something between its constants")
    _check_leaves(program, structure)
    return (parse(program_text, data) if data else program), structure


def _constant(rest: bytes, at: int, ref: str, type_: TensorType) -> np.ndarray:
    shape = tuple(n for n in type_.shape if isinstance(n, int))
    array = np.frombuffer(rest, DTYPES[type_.dtype], math.prod(shape), at).reshape(shape)
    if constant_ref(array, type_) != ref:
        raise ArchiveError(f"it is damaged: the data of the constant {ref} have another hash")
    if type_.dtype == "bool" and np.any(array.reshape(-1).view(np.uint8) > 1):
        raise ArchiveError(f"the constant {ref} has bools that are neither 0 nor 1")
    return array


def _check_leaves(program: Program, structure: Structure | None) -> None:
    if structure is None:
        return
    arguments, results = (
        sum(trees.leaf_count(part.tree) for part in parts)
        for parts in (structure.arguments, structure.results)
    )
    if (arguments, results) != (len(program.inputs), len(program.outputs)):
        raise ArchiveError("its description of arguments and results does not fit its Program")


def _constant_types(program: Program) -> dict[str, TensorType]:
    """The types of the constants that the Program refers to, by their references."""
    types: dict[str, TensorType] = {}
    for eq in program.equations:
        found = {eq.attrs["ref"]: eq.outputs[0].type} if eq.op == "constant" and "ref" in eq.attrs else {}
        for body in eq.bodies:
            found.update(_constant_types(body))
        for ref, type_ in found.items():
            if not isinstance(ref, str) or types.setdefault(ref, type_) != type_:
                raise ProgramTypeError(f"the constant {ref} is of two types")
            if not all(isinstance(n, int) for n in type_.shape):
                raise ProgramTypeError(f"a constant cannot be a {type_}")
    return types


def _places(types: Mapping[str, TensorType], length: int) -> tuple[dict[str, int], int]:
    """Where constants begin in the file, in the order of their references, and where the last ends."""
    places, end = {}, _START + length
    for ref in sorted(types):
        places[ref] = -(-end // ALIGNMENT) * ALIGNMENT
        end = places[ref] + types[ref].bytes
    return places, end
