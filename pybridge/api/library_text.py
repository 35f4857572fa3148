"""The C header of a library, and its manifest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import jax

from .. import distribution
from ..ir.numerals import COMPLEX
from ..runtime import julia
from ..runtime.c_functions import ALIGNMENT, OUT_OF_MEMORY, CFunction, Linked
from .library_functions import Function
from .library_leaves import Parameter

_C_TYPES = {
    "bool": "uint8_t",
    **{f"i{n}": f"int{n}_t" for n in (8, 16, 32, 64)},
    **{f"u{n}": f"uint{n}_t" for n in (8, 16, 32, 64)},
    "f16": "uint16_t",
    "bf16": "uint16_t",
    "f32": "float",
    "f64": "double",
    "c64": "float",
    "c128": "double",
}


@dataclass(frozen=True)
class Content:
    """What the texts are about: a library's name, the function that it is of, and what is in it."""

    name: str
    of: str
    functions: tuple[Function, ...]
    linked: Linked

    @property
    def pairs(self) -> list[tuple[Function, CFunction]]:
        return list(zip(self.functions, self.linked.functions, strict=True))

    @property
    def file(self) -> str:
        return f"lib{self.name}.so"


# The header

_HEADER = """\
/* {file}: C functions of {of}, made by pybridge {version}.
 *
 * Each function takes pointers to its arguments, then to memory for its results, which may overlap neither
 * each other nor arguments. Arrays are row-major and contiguous, at addresses that their C types may have.
 * A bool is a byte, 0 or 1; float16 and bfloat16 are their 16 bits; a complex number is its real and its
 * imaginary part.
 *
 * A function returns {upper}_OK or {upper}_OUT_OF_MEMORY. It takes memory to work in by itself; the one of
 * the same name with _in is given it: as many bytes as its macro ending with _WORKSPACE says, aligned to
 * {upper}_WORKSPACE_ALIGNMENT, with anything in them. The one with _scipy takes all numbers in a row, and
 * gives NaN if their count is wrong or memory runs out.
 *
 * Threads: there is no state. Any number of threads may call any functions at once, each with results and a
 * workspace of its own. A function runs in the thread that calls it{blas_threads}.
 *
 * Compiled for the processor {processor}; on one that lacks its features it crashes.
 * {needs}
 */
"""


def header(content: Content) -> str:
    upper, linked = content.name.upper(), content.linked
    blas = linked.blas
    guard = f"PYBRIDGE_{upper}_H"
    parts = [
        _HEADER.format(
            file=content.file,
            of=_comment(content.of),
            version=distribution.version(),
            upper=upper,
            processor=linked.processor,
            blas_threads=", BLAS aside" if blas else "",
            needs=f"Needs {blas} (BLAS and LAPACK), libm and libc." if blas else "Needs libm and libc.",
        ),
        f"#ifndef {guard}\n#define {guard}\n\n#include <stdint.h>\n",
        '#ifdef __cplusplus\nextern "C" {\n#endif\n',
        f"#define {upper}_OK 0\n#define {upper}_OUT_OF_MEMORY {OUT_OF_MEMORY}\n"
        f"#define {upper}_WORKSPACE_ALIGNMENT {ALIGNMENT}\n",
        *(_declarations(content.name, function, compiled) for function, compiled in content.pairs),
        f"#ifdef __cplusplus\n}}\n#endif\n\n#endif /* {guard} */\n",
    ]
    return "\n".join(parts)


def _declarations(library: str, function: Function, compiled: CFunction) -> str:
    lines = [f"/* {function.name}", *_described(function), " */"]
    macro = f"{library}_{function.name}_WORKSPACE".upper()
    lines.append(f"#define {macro} {compiled.workspace}")
    lines += [f"{signature};" for signature in signatures(function, compiled)]
    return "\n".join(lines) + "\n"


def _described(function: Function) -> list[str]:
    rows = [(p, "in") for p in function.arguments] + [(p, "out") for p in function.results]
    width = max((len(p.name) for p, _ in rows), default=0)
    return [
        f" *   {way:3} {p.name:{width}}  {p.type}  {_comment(p.role)}: {_comment(p.python)}"
        for p, way in rows
    ]


def signatures(function: Function, compiled: CFunction) -> list[str]:
    """The function of C, the one that is given its workspace, and maybe the one that SciPy calls."""
    inputs = [f"const {_pointer(p)}" for p in function.arguments]
    plain = inputs + [_pointer(p) for p in function.results]
    own, given, *numbers = compiled.symbols
    return [
        f"int {own}({', '.join(plain) or 'void'})",
        f"int {given}({', '.join([*plain, 'void *workspace'])})",
        *(f"double {name}(int count, double *numbers, void *user_data)" for name in numbers),
    ]


def _pointer(p: Parameter) -> str:
    return f"{_C_TYPES[p.type.dtype]} *{p.name}"


def _comment(text: str) -> str:
    return text.replace("*/", "* /").replace("/*", "/ *")


# The manifest


def manifest(content: Content, files: dict[str, bytes]) -> str:
    linked = content.linked
    return json.dumps(
        {
            "library": content.name,
            "of": content.of,
            "pybridge": distribution.version(),
            "jax": jax.__version__,
            "julia": julia.installation().version,
            "processor": linked.processor,
            "features": list(linked.features),
            "status": {"0": "done", str(OUT_OF_MEMORY): "out of memory"},
            "workspace_alignment": ALIGNMENT,
            "needs": {
                "libraries": [str(linked.blas)] if linked.blas else [],
                "routines": sorted({name for f in linked.functions for name in f.routines}),
                "system": ["libc", "libm"],
            },
            "functions": [_entry(function, compiled) for function, compiled in content.pairs],
            "sha256": {name: hashlib.sha256(data).hexdigest() for name, data in files.items()},
        },
        indent=2,
    )


def _entry(function: Function, compiled: CFunction) -> dict[str, Any]:
    return {
        "name": function.name,
        "symbols": dict(zip(compiled.symbols, signatures(function, compiled), strict=True)),
        "arguments": _parameters(function.arguments),
        "results": _parameters(function.results),
        "workspace": compiled.workspace,
    }


def _parameters(parameters: Iterable[Parameter]) -> list[dict[str, Any]]:
    return [
        {
            "name": p.name,
            "dtype": p.type.dtype,
            "shape": list(p.type.shape),
            "c_type": _C_TYPES[p.type.dtype],
            "numbers": p.size * (2 if p.type.dtype in COMPLEX else 1),
            "role": p.role,
            "python": p.python,
        }
        for p in parameters
    ]
