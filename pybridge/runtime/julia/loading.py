"""Opening shared libraries."""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress
from pathlib import Path

PROCESS = ctypes.CDLL(None)


def opened(path: Path, mode: int) -> ctypes.CDLL:
    """The library, with dlopen's flags. Raises OSError with the loader's reason.

    ctypes keeps the GIL while it loads a library: Ctrl-C would wait for LLVM to come from a slow disk.
    """
    load = ctypes.CDLL(None).dlopen
    load.argtypes, load.restype = [ctypes.c_char_p, ctypes.c_int], ctypes.c_void_p
    load(bytes(path), os.RTLD_NOW | mode)  # if it fails, ctypes says why
    return ctypes.CDLL(str(path), mode=mode)


def keep_libgccs_unwinder() -> None:
    """Make libgcc's `_Unwind_*` the ones that libraries loaded later find.

    Old libjulias bring libunwind, which exports functions of the same names; C++ exceptions thrown with
    those by a library loaded after Julia (matplotlib's, say) are not caught and end the process.
    """
    with suppress(OSError):  # no such library: a platform without the problem
        ctypes.CDLL("libgcc_s.so.1", mode=ctypes.RTLD_GLOBAL)


def address(library: ctypes.CDLL, name: str) -> int:
    """Where the library, or one that it needs, has this symbol. Raises AttributeError where none has it."""
    return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0


class _Found(ctypes.Structure):
    _fields_ = [
        ("path", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("at", ctypes.c_void_p),
    ]


def library_at(place: int) -> str:
    """The path of the library that this address lies in; empty if in none."""
    found = _Found()
    PROCESS.dladdr.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    return os.fsdecode(found.path or b"") if PROCESS.dladdr(place, ctypes.byref(found)) else ""
