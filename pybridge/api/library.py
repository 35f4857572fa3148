"""`compile_library`: a function and its derivatives as a shared library for C."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax

from ..errors import ArgumentError, LibraryError, UnknownOption
from ..frontend.names import function_name
from ..ir.program import Program
from ..runtime import c_functions
from ..runtime.linker import linker
from . import library_functions, library_text
from .library_functions import FUNCTIONS
from .library_leaves import Argnums, flattened, wants_x64
from .library_names import is_name

_OPTIONS = ("static_argnums", "static_argnames", "while_bound")


@dataclass(frozen=True, repr=False)
class CLibrary:
    """The files of a library: itself, its C header, and its manifest, which is JSON.

    functions: the names that C calls.
    """

    library: Path
    header: Path
    manifest: Path
    functions: tuple[str, ...]

    def __repr__(self) -> str:
        return f"<{self.library}: {', '.join(self.functions)}>"


def compile_library(
    f: Callable | Program,
    name: str,
    functions: Sequence[str] = ("value",),
    *,
    directory: str | os.PathLike[str] = ".",
    argnums: Argnums = None,
    processor: str = c_functions.NATIVE,
    **options: Any,
) -> Callable[..., CLibrary]:
    """`compile_library(f, "model")(*args)` writes `libmodel.so`, `model.h` and `model.json` into `directory`.

    The library has a C function of pointers, `model_value`, for each of `functions`: "value", "grad",
    "value_and_grad", "jvp", "vjp", "hvp", "jacobian", "hessian". It needs neither Python nor JAX nor Julia,
    and any number of threads may call it at once; docs/library.md says what it takes and gives.

    f: a function, or a Program. args: arrays or `jax.ShapeDtypeStruct`s, of which the leaves are the
        arguments in C, at these shapes and exactly these dtypes.
    argnums: the positions of the arguments by which derivatives are taken; by default all floats.
    processor: what it is compiled for: "native", this one with all it has, or "x86-64", "x86-64-v2", "-v3",
        "-v4", which runs on every processor of that level.
    options: `static_argnums`, `static_argnames` and `while_bound`, as for `bridge`.

    Raises UnknownOption for names that cannot be; UnsupportedPrimitive for what has no native kernel;
    ArgumentError for symbolic dimensions and for gradients of what is no number; NotDifferentiable;
    LibraryError where there is no linker or the code cannot be in a file; and what `trace` raises.
    """
    wanted = _checked(f, name, functions, options)
    if processor not in c_functions.processors():
        there = ", ".join(map(repr, c_functions.processors()))
        raise UnknownOption(f"code cannot be compiled here for {processor!r}, only for {there}")

    def compiled(*args, **kwargs) -> CLibrary:
        if linker() is None:
            raise LibraryError("libraries are made on Linux, by a C compiler or a linker; here is none")
        # 64 bits where the arguments have them, whatever JAX is set to here.
        wide = wants_x64(f, (args, kwargs))
        with jax.enable_x64(True) if wide else contextlib.nullcontext():
            flat = flattened(f, args, kwargs, argnums, **options)
            made = tuple(library_functions.made(function, flat) for function in wanted)
        return _written(name, flat.name, made, Path(directory), processor)

    return compiled


def _checked(f: Any, name: Any, functions: Any, options: dict[str, Any]) -> tuple[str, ...]:
    if not isinstance(f, Program) and not callable(f):
        raise ArgumentError(f"compile_library takes a function or a Program, got {type(f).__name__}")
    if not is_name(name):
        raise UnknownOption(f"a library's name begins names of C functions, and {name!r} cannot")
    wanted = (functions,) if isinstance(functions, str) else tuple(functions)
    for function in wanted:
        if function not in FUNCTIONS:
            raise UnknownOption(f"there is no function {function!r}; there are {', '.join(FUNCTIONS)}")
    if not wanted:
        raise UnknownOption(f"no function is given; there are {', '.join(FUNCTIONS)}")
    for option in options:
        if option not in _OPTIONS or isinstance(f, Program):
            raise UnknownOption(f"compile_library has no option {option!r} for a {_kind(f)}")
    return tuple(dict.fromkeys(wanted))


def _kind(f: Any) -> str:
    return "Program" if isinstance(f, Program) else f"function such as {function_name(f)}"


def _written(
    name: str, of: str, functions: tuple[library_functions.Function, ...], folder: Path, processor: str
) -> CLibrary:
    """Each file is written to a temporary folder and renamed: a process that uses the old one keeps it."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = (folder / f"lib{name}.so", folder / f"{name}.h", folder / f"{name}.json")
    with tempfile.TemporaryDirectory(prefix=".pybridge-", dir=folder) as temporary:
        parts = [Path(temporary, path.name) for path in paths]
        programs = [(f"{name}_{f.name}", f.program) for f in functions]
        linked = c_functions.write(programs, parts[0], processor)
        content = library_text.Content(name, of, functions, linked)
        parts[1].write_text(library_text.header(content))
        files = {path.name: path.read_bytes() for path in parts[:2]}
        parts[2].write_text(library_text.manifest(content, files) + "\n")
        for part, path in zip(parts, paths, strict=True):
            part.replace(path)
    symbols = tuple(symbol for function in linked.functions for symbol in function.symbols)
    return CLibrary(paths[0], paths[1], paths[2], symbols)
