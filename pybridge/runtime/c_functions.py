"""Programs as functions of C, which Julia writes into object files that nothing has to make ready.

JaxprAD's codegen/objects/library.jl has the functions, `docs/library.md` what they take.
"""

from __future__ import annotations

import platform
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .. import errors
from ..ir.program import Program
from .kernel_files import NO_FILE
from .linker import link_for_shipping
from .requests import ask, references

OUT_OF_MEMORY = 1
"""What a function returns then, julia/src/codegen/generator/generator.jl; 0 when all is well."""
ALIGNMENT = 64
"""Of workspaces, in bytes, julia/src/ffi/workspaces.jl."""

NATIVE = "native"
# The levels of x86-64, and the first processors that LLVM knows to have all of one.
_LEVELS = {"x86-64": "x86-64", "x86-64-v2": "nehalem", "x86-64-v3": "haswell", "x86-64-v4": "skylake-avx512"}


def processors() -> tuple[str, ...]:
    """What code can be compiled for here."""
    return (NATIVE, *_LEVELS) if platform.machine() in ("x86_64", "AMD64") else (NATIVE,)


@dataclass(frozen=True)
class CFunction:
    """symbols: the function, the one that is given its workspace, and maybe the one that SciPy calls.

    routines: those of BLAS and LAPACK that it calls.
    """

    symbols: tuple[str, ...]
    workspace: int
    routines: tuple[str, ...]


@dataclass(frozen=True)
class Linked:
    """processor: that the code is for. features: what it has, by LLVM's names; none for one by its level.

    blas: the file of its routines.
    """

    functions: tuple[CFunction, ...]
    processor: str
    features: tuple[str, ...]
    blas: Path | None


def write(named: Sequence[tuple[str, Program]], target: Path, processor: str = NATIVE) -> Linked:
    """A shared library with a function of C of each Program, under its name.

    processor: one of `processors()`.

    Raises UnsupportedPrimitive for what has no native kernel, and LibraryError where no library can be made.
    """
    with tempfile.TemporaryDirectory(prefix="pybridge-") as folder:
        objects = [Path(folder, f"{name}.o") for name, _ in named]
        facts = [
            _written(name, program, path, _LEVELS.get(processor, processor))
            for (name, program), path in zip(named, objects, strict=True)
        ]
        functions = tuple(
            CFunction(tuple(fact["symbols"].split()), int(fact["workspace"]), tuple(fact["routines"].split()))
            for fact in facts
        )
        blas = _blas() if any(function.routines for function in functions) else None
        reason = link_for_shipping(objects, target, [blas] if blas else [])
        if reason is not None:
            raise errors.LibraryError(f"linking failed: {reason}")
    features = facts[0]["features"].split(",")
    wanted = tuple(sorted(feature[1:] for feature in features if feature.startswith("+")))
    return Linked(functions, facts[0]["processor"] if processor == NATIVE else processor, wanted, blas)


def _written(name: str, program: Program, path: Path, processor: str) -> dict[str, str]:
    """What Julia says of the object file that it wrote."""
    constants = {ref: np.ascontiguousarray(data) for ref, data in program.constants.items()}
    try:
        words = [name, references(constants), processor]
        text = ask("library_object", program, *words, before=f"{path}\n")
    except errors.JuliaError as e:
        if e.kind != NO_FILE:
            raise
        raise errors.LibraryError(f"{name} cannot be in a library: {e}") from None
    return dict(line.partition(" ")[::2] for line in text.splitlines())


def _blas() -> Path:
    path = ask("blas", None)
    if not path:
        raise errors.LibraryError("this Julia's BLAS is in no file that a library could be linked to")
    return Path(path)
