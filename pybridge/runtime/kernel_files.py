"""Kernels as shared libraries in the user's cache, which a process loads without starting Julia.

Julia writes an object file that holds no address of its process: what code refers to by address is a table in
it (JaxprAD, codegen/objects/), which the process that loads the file fills. What every kernel needs of its
process, the handler of XLA's calls and threads, is a library of the same kind, the host.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import logging
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .. import cache, errors
from ..ir.program import Program
from . import julia
from .julia import processor
from .julia.ending import threads_ended
from .keys import key
from .linker import link, linker
from .requests import ask, references

_LOG = logging.getLogger(__name__)
_TABLE = "pybridge_table"
NO_FILE = "NoObjectFile"  # Julia's name for the refusal
_NONE = "none "  # of a kernel that cannot be in a file: the reason follows
_PATIENCE = 10.0  # seconds that kernels have to end when the process does

# XLA may call a kernel as long as the process lives: what it needs is never freed.
_KEPT: list[object] = []
_LOADED: dict[str, tuple[int, int] | None] = {}
_LOADING = threading.RLock()


@dataclass(frozen=True)
class Manifest:
    """What Julia says of an object file that it wrote.

    places: what each place of its table is, kind and name. handler, kernel: its symbols. types: of operands
    and results, dtype, rank and dimensions, one after the other. sizes: the bytes of each result. blas: the
    library of its routines.
    """

    places: tuple[tuple[str, str], ...]
    handler: str = ""
    kernel: str = ""
    workspace: int = 0
    operands: int = 0
    types: tuple[int, ...] = ()
    sizes: tuple[int, ...] = ()
    blas: str = ""

    @classmethod
    def parse(cls, text: str) -> Manifest:
        lines = _lines(text)
        facts = dict(lines)
        places = [rest.partition(" ")[::2] for word, rest in lines if word == "place"]
        return cls(
            tuple(places),
            facts.get("handler", ""),
            facts.get("kernel", ""),
            int(facts.get("workspace", "0")),
            int(facts.get("operands", "0")),
            _numbers(facts.get("types", "-")),
            _numbers(facts.get("bytes", "-")),
            facts.get("blas", ""),
        )


class _Unusable(Exception):
    """A library that cannot be made, found or loaded here; the message says why."""


class _Refused(_Unusable):
    """Code that cannot be in a file on this machine, ever."""


class _Descriptor(ctypes.Structure):
    """JaxprAD's FFI.Descriptor (julia/src/ffi/handler.jl)."""

    _fields_ = (
        ("kernel", ctypes.c_void_p),
        ("operands", ctypes.c_int64),
        ("results", ctypes.c_int64),
        ("workspace", ctypes.c_int64),
        ("types", ctypes.c_void_p),
        ("bytes", ctypes.c_void_p),
        ("name", ctypes.c_void_p),
        ("name_size", ctypes.c_int64),
    )


def kernel(program: Program, constants: Mapping[str, np.ndarray]) -> tuple[int, int] | None:
    """The address of the Program's FFI handler and the bytes of its workspace, from a file.

    The file is made if there is none yet. None where kernels are not kept in files, or this one cannot be.
    constants: the Program's, in memory that stays. Raises what a request to compile it raises.
    """
    julia.claim()  # before the lock is taken, so that no forked child waits for it
    store = cache.default()
    if store is None or linker() is None:
        return None
    place = key("kernel", program.digest)
    # XLA takes one handler for a name: threads that need a kernel at once must get the same.
    with _LOADING:
        if place not in _LOADED:
            _LOADED[place] = _ready(store, place, program, constants)
        return _LOADED[place]


def prepare() -> None:
    """Have what kernels share compiled and kept, so that the first of them does not wait for it.

    That is the host, and the routines that JaxprAD's workload and models call (julia/image).
    """
    store = cache.default()
    if store is None or linker() is None:
        return
    with tempfile.TemporaryDirectory(prefix="pybridge-") as folder:
        shared: list[Callable[[], object]] = [functools.partial(_host, store)]
        for symbol in ask("common_routines", None).split():
            shared.append(functools.partial(_routine, store, symbol, Path(folder) / "routine.o"))
        for make in shared:
            try:
                make()
            except _Unusable as reason:
                _LOG.debug("what kernels share is compiled in memory: %s", reason)


def _ready(
    store: cache.Store, place: str, program: Program, constants: Mapping[str, np.ndarray]
) -> tuple[int, int] | None:
    try:
        manifest, path = _found(store, place) or _made(store, place, "object", program, references(constants))
        ready = _Kernel(store, _library(path), manifest, program.name or "program", constants)
        return ready.handler(), manifest.workspace
    except _Unusable as reason:
        _LOG.debug("%s is compiled in memory: %s", program.name, reason)
        return None


def _found(store: cache.Store, place: str) -> tuple[Manifest, Path] | None:
    content = store.read(place)
    if content is None:
        return None
    text = _manifest_of(content)
    if text.startswith(_NONE):
        raise _Unusable(text.removeprefix(_NONE))
    return Manifest.parse(text), store.path(place)


def _made(store: cache.Store, place: str, command: str, program: Program | None, *words: str):
    """The library that Julia's object file is linked to, kept, and its manifest."""
    with tempfile.TemporaryDirectory(prefix="pybridge-") as name:
        folder = Path(name)
        linked = folder / "kernel.so"
        try:
            text = _object(folder / "kernel.o", command, program, *words)
            parts = [Path(rest) for word, rest in _lines(text) if word == "part"]
            needed = [rest for word, rest in _lines(text) if word == "needs"]
            routines = [_routine(store, s, folder / f"routine-{n}.o") for n, s in enumerate(needed)]
        except _Refused as e:
            store.write(place, _entry(b"", f"{_NONE}{e}"))
            raise
        if "\nplace routine " in text:
            text += f"\nblas {ask('blas', None)}"
        reason = link([folder / "kernel.o", *parts, *routines], linked)
        if reason is not None:
            raise _Unusable(f"linking failed: {reason}")
        written = store.write(place, _entry(linked.read_bytes(), text))
    found = _found(store, place) if written else None
    if found is None:
        raise _Unusable("the cache cannot be written")
    return found


def _routine(store: cache.Store, symbol: str, target: Path) -> Path:
    """The object file of a function that kernels share, which Julia writes for the first of them."""
    place = key("routine", symbol)
    content = store.read(place)
    if content is None:
        _object(target, "routine_object", None, text=symbol)
        store.write(place, target.read_bytes())
    else:
        target.write_bytes(content)
    return target


def _object(target: Path, command: str, program: Program | None, *words: str, text: str = "") -> str:
    """What Julia says of the object file that it writes there."""
    try:
        if program is None:
            return ask(command, None, *words, before=f"{target}\n{text}".rstrip())
        return ask(command, program, *words, before=f"{target}\n")
    except errors.JuliaError as e:
        if e.kind == NO_FILE:
            raise _Refused(str(e)) from None
        # What is wrong with the Program has names of its own, and is raised.
        _LOG.warning("no object file of a kernel could be written: %s: %s", e.kind, e)
        raise _Unusable(str(e)) from None


# Library and manifest are one entry, so that they are of one process: the loader of libraries does not mind
# what follows after the end.


def _entry(library: bytes, manifest: str) -> bytes:
    text = manifest.encode()
    return library + text + len(text).to_bytes(8, "little")


def _manifest_of(entry: bytes) -> str:
    size = int.from_bytes(entry[-8:], "little")
    return entry[-8 - size : -8].decode()


@dataclass(frozen=True)
class _Kernel:
    """A kernel's library that is made ready to be called."""

    store: cache.Store
    library: ctypes.CDLL
    manifest: Manifest
    name: str
    constants: Mapping[str, np.ndarray]

    def handler(self) -> int:
        _fill(self.library, self.manifest, self.outside)
        return _address(self.library, self.manifest.handler)

    def outside(self, kind: str, what: str) -> int:
        """The address for a place of the table that is not in the library itself."""
        match kind:
            case "host":
                return _address(_host(self.store), what)
            case "descriptor":
                return _descriptor(_address(self.library, self.manifest.kernel), self.manifest, self.name)
            case "constant":
                return self.constants[what].ctypes.data
            case "routine":
                return _address(_blas(self.manifest.blas), what)
        raise _Unusable(f"a place of unknown kind, {kind}")


def _descriptor(kernel_: int, manifest: Manifest, name: str) -> int:
    types, sizes = (np.array(numbers, np.int64) for numbers in (manifest.types, manifest.sizes))
    letters = ctypes.create_string_buffer(name.encode())
    made = _Descriptor(
        kernel_,
        manifest.operands,
        len(sizes),
        manifest.workspace,
        types.ctypes.data,
        sizes.ctypes.data,
        ctypes.addressof(letters),
        len(letters) - 1,
    )
    _KEPT.append((made, types, sizes, letters))
    return ctypes.addressof(made)


@functools.cache
def _host_library(place: Path, host: str) -> ctypes.CDLL:
    store = cache.default()
    assert store is not None
    manifest, path = _found(store, host) or _made(store, host, "host_object", None)
    library = _library(path)

    def own(kind: str, what: str) -> int:
        raise _Unusable(f"the host has a place of kind {kind}")

    _fill(library, manifest, own)
    atexit.register(_end, library)
    return library


def _host(store: cache.Store) -> ctypes.CDLL:
    return _host_library(store.place, key("host"))


def _end(host: ctypes.CDLL) -> None:
    """Let no kernel begin any more, and wait for those that run: BLAS is taken down with the process."""
    shut = host.host_shut
    shut.restype = ctypes.c_int64
    deadline = time.monotonic() + _PATIENCE
    while shut() > 0 and time.monotonic() < deadline:
        time.sleep(0.001)
    threads_ended()


def _fill(library: ctypes.CDLL, manifest: Manifest, outside: Callable[[str, str], int]) -> None:
    table = (ctypes.c_void_p * max(1, len(manifest.places))).in_dll(library, _TABLE)
    for i, (kind, what) in enumerate(manifest.places):
        table[i] = _address(library, what) if kind in ("function", "data") else outside(kind, what)


def _library(path: Path) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(str(path))
    except OSError as problem:
        raise _Unusable(str(problem)) from None


@functools.cache
def _blas(path: str) -> ctypes.CDLL:
    """Julia's BLAS, one thread at a time: XLA's threads split the work."""
    if not path:
        raise _Unusable("this Julia's BLAS is in no file")
    with processor.told_to_openblas(julia.installation()):
        library = _library(Path(path))
    for name in ("openblas_set_num_threads64_", "openblas_set_num_threads"):
        if hasattr(library, name):
            getattr(library, name)(1)
            break
    return library


def _address(library: ctypes.CDLL, symbol: str) -> int:
    try:
        found = ctypes.cast(getattr(library, symbol), ctypes.c_void_p).value
    except AttributeError:
        raise _Unusable(f"{library._name} has no {symbol}") from None
    assert found is not None
    return found


def _lines(text: str) -> list[tuple[str, str]]:
    """A word and the rest, of each line."""
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in text.splitlines())]


def _numbers(text: str) -> tuple[int, ...]:
    return () if text == "-" else tuple(map(int, text.split(",")))
