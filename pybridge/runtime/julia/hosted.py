"""A Julia that runs in this process, however it was started, as the control thread uses it."""

from __future__ import annotations

import ctypes
import fcntl
import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from . import protocol
from .libjulia import LibJulia
from .signals import Guard
from .source import Package
from .stdio import stdio_blocking

_LOG = logging.getLogger(__name__)
_SILENCE = 10.0  # seconds of waiting that need no word
_BOOT = Path(__file__).with_name("boot.jl")


@dataclass(frozen=True)
class Service:
    """A loaded package's `serve`, and the flag that ends what it is doing."""

    path: Path
    function: int
    cancelled: ctypes.c_int32


@dataclass(frozen=True)
class Hosted:
    """Used on the control thread only."""

    library: LibJulia
    segv: Guard
    finish: Callable[[], None]

    def parked(self) -> AbstractContextManager[None]:
        return self.library.parked()

    def guard(self) -> None:
        self.segv.keep()

    def tick(self) -> None:
        self.library.tick()

    def load(self, package: Package) -> Service:
        """Load the package, precompiling it if this depot has not seen it yet."""
        host = self.library.text(
            'let host = Module(gensym("PyBridge"))\n'
            "Core.eval(Main, Expr(:const, Expr(:(=), nameof(host), host)))\n"  # roots it
            f"Base.include(host, {_literal(str(_BOOT))})\n"
            "string(nameof(host)) end"
        )
        host = f"getfield(Main, Symbol({_literal(host)}))"
        unguarded = self.library.text(f"{host}.unguarded({_literal(package.name)})")
        with stdio_blocking(), _one_at_a_time(unguarded):
            code = f"{host}.load({_literal(package.name)}, {_literal(str(package.folder))})"
            address, _, path = protocol.decode(self.library.text(code)).partition("\n")
        return Service(
            Path(path), self.library.evaluate(f"{host}.serve"), ctypes.c_int32.from_address(int(address))
        )

    def serve(self, service: Service, message: str) -> str:
        return self.library.call(service.function, message)


@contextmanager
def _one_at_a_time(folder: str) -> Iterator[None]:
    """Old Julias write precompiled files in place: two processes doing so at once spoil them for a third."""
    if not folder:
        yield
        return
    Path(folder).mkdir(parents=True, exist_ok=True)
    lock = os.open(Path(folder, "pybridge.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        if not _locked(lock, _SILENCE):
            _LOG.warning("waiting for another process, which precompiles for Julia in %s", folder)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        # Closing it is not enough: a child forked meanwhile has it open, too.
        fcntl.flock(lock, fcntl.LOCK_UN)
        os.close(lock)


def _locked(lock: int, patience: float) -> bool:
    end = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() > end:
                return False
            time.sleep(0.02)


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$")
    return f'"{escaped}"'
