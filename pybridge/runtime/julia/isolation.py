"""libjulia in a process that may have other Julias: a library made by juliac, say, brings a private one.

All of them export the same names, and Julia loads itself globally: its names then answer for every library
that is loaded later, and for each look-up in the process. Newer Julias have symbol versions, which keep them
apart. An older one has none: its references take symbols of any version, and references of any version take
its symbols. Two Julias that share half of their variables in this way crash.

So a libjulia without versions is opened here such that its names are not the process's, and that it finds its
own first:

- References of libjulia and of its system image are bound to libjulia, by RTLD_DEEPBIND where the process has
  another Julia already.
- What Julia looks up among the process's symbols, by `dlsym` with the handle of the program, is looked up in
  libjulia first: libjulia's pointer to `dlsym` is replaced by one to a few instructions that do so.
- LLVM looks up in the process what compiled code refers to: it is given the addresses of libjulia's symbols.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
import struct
from collections.abc import Iterable
from pathlib import Path

from ...errors import JuliaUnusable
from . import loading
from .elf import Library
from .loading import PROCESS, address

_LINKMAP = 2  # dlinfo's request for it; the address at which the library lies is its first word

_ISOLATED: list[ctypes.CDLL] = []

# dlsym(handle, name): libjulia's symbol of that name if the handle is the program's and there is one.
_DLSYM_X86_64 = bytes.fromhex(
    "483b3d29000000"  #        cmp  rdi, [program]
    "751f"  #                  jne  other
    "57"  #                    push rdi
    "56"  #                    push rsi
    "4883ec08"  #              sub  rsp, 8
    "488b3d22000000"  #        mov  rdi, [libjulia]
    "ff1524000000"  #          call [dlsym]
    "4883c408"  #              add  rsp, 8
    "5e"  #                    pop  rsi
    "5f"  #                    pop  rdi
    "4885c0"  #                test rax, rax
    "7401"  #                  je   other
    "c3"  #                    ret
    "ff2512000000"  #   other: jmp  [dlsym]
    "cccc"  #                  never reached; three words follow: program, libjulia, dlsym
)


def apart(path: Path) -> ctypes.CDLL:
    """The libjulia, opened such that other Julias in the process neither disturb it nor are disturbed.

    Raises JuliaUnusable where that cannot be had and another is there; OSError where it cannot be loaded.
    """
    tables = _unversioned(path)
    if tables is None:
        return loading.opened(path, os.RTLD_GLOBAL)
    if (library := _isolated(path, tables)) is not None:
        return library
    if other := another():
        raise JuliaUnusable(
            f"a library in this process has brought a Julia of its own, {other}, with which {path} cannot be "
            "mixed: it has no symbol versions, as Julia 1.12 has. Use that library in another process, "
            "or set PYBRIDGE_JULIA to a newer Julia"
        )
    # Julia code looks C functions up among the process's symbols
    return loading.opened(path, os.RTLD_GLOBAL)


def another() -> str:
    """The library that answers for Julia's names in this process; empty if none does."""
    try:
        return loading.library_at(address(PROCESS, "jl_is_initialized"))
    except AttributeError:
        return ""


def bind_image(image: Path) -> None:
    """Bind the references of an isolated Julia's image, which Julia opens without RTLD_DEEPBIND."""
    if _ISOLATED:
        loading.opened(image, _mode())


def _unversioned(path: Path) -> Library | None:
    """The tables of this libjulia; None where its symbols have versions, which keep it apart from others."""
    try:
        tables = Library(path.resolve())
    except ValueError:  # another platform, whose loader keeps libraries apart by itself
        return None
    return None if tables.has_versions else tables


def _isolated(path: Path, tables: Library) -> ctypes.CDLL | None:
    """None where this machine or this Julia does not allow it.

    Julia 1.6 and newer are no single library, and give their own names to the process wherever they are.
    """
    if platform.machine() != "x86_64":
        return None
    slots, names = list(tables.slots("dlsym")), set(tables.exported())
    if not slots or "jl_dlsym" not in names:
        return None
    library = loading.opened(path, _mode())
    if not hasattr(library, "LLVMAddSymbol"):  # a Julia with an LLVM of its own inside
        return None
    try:
        _redirect(library, slots)
    except OSError:  # a system that lets no program write instructions
        return None
    _tell_llvm(library, names)
    _ISOLATED.append(library)
    return library


def _redirect(library: ctypes.CDLL, slots: Iterable[int]) -> None:
    look_up, base = _instructions(library), _base(library)
    for slot in slots:
        _write(base + slot, look_up)


def _tell_llvm(library: ctypes.CDLL, names: Iterable[str]) -> None:
    add = library.LLVMAddSymbol
    add.argtypes, add.restype = [ctypes.c_char_p, ctypes.c_void_p], None
    for name in names:
        add(name.encode(), address(library, name))


def _mode() -> int:
    # Where no other Julia answers, RTLD_DEEPBIND would only mix the C++ unwinders (`keep_libgccs_unwinder`).
    return os.RTLD_LOCAL | (os.RTLD_DEEPBIND if another() else 0)


def _instructions(library: ctypes.CDLL) -> int:
    """The address of the look-up, in memory that is never returned: what ends the process may use it."""
    words = struct.pack("<3Q", PROCESS._handle, library._handle, address(PROCESS, "dlsym"))
    new = PROCESS.mmap
    new.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    new.restype = ctypes.c_void_p
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    place = new(None, mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
    if place in (None, ctypes.c_void_p(-1).value):
        raise OSError("the system has no page of memory")
    ctypes.memmove(place, _DLSYM_X86_64 + words, len(_DLSYM_X86_64) + len(words))
    _protect(place, mmap.PROT_READ | mmap.PROT_EXEC)
    return place


def _write(slot: int, value: int) -> None:
    """Into the library's table of imported functions, which the loader has made read-only."""
    before = _protection(slot)
    _protect(slot, before | mmap.PROT_WRITE)
    ctypes.c_size_t.from_address(slot).value = value
    _protect(slot, before)


def _protection(place: int) -> int:
    for line in Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines():
        span, rights = line.split(maxsplit=2)[:2]
        first, last = (int(end, 16) for end in span.split("-"))
        if first <= place < last:
            flags = zip("rwx", (mmap.PROT_READ, mmap.PROT_WRITE, mmap.PROT_EXEC), strict=True)
            return sum(flag for letter, flag in flags if letter in rights)
    raise OSError(f"nothing is mapped at {place:#x}")


def _protect(place: int, rights: int) -> None:
    protect = PROCESS.mprotect
    protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    page = place & -mmap.PAGESIZE
    if protect(page, mmap.PAGESIZE, rights) != 0:
        raise OSError(f"the system does not let the memory at {page:#x} be changed")


def _base(library: ctypes.CDLL) -> int:
    """The address at which the library lies."""
    link_map = ctypes.c_void_p()
    PROCESS.dlinfo.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
    if PROCESS.dlinfo(library._handle, _LINKMAP, ctypes.byref(link_map)) != 0 or not link_map.value:
        raise OSError(f"the loader does not tell where {library._name} is")
    return ctypes.c_size_t.from_address(link_map.value).value
