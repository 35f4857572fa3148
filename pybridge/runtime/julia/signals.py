"""Who owns which signal once Python and Julia share a process.

Julia stops its threads for a collection by protecting a page they read: the fault must reach Julia's
SIGSEGV action, so that one is put back whenever somebody (faulthandler, mostly) takes it. Another Julia in
the process needs its own as much: where ours has one thread, whose collections wait for no other, it stays.
SIGINT, SIGTERM and their like stay Python's, whose actions are put back after Julia's start.

Actions are read and written by `sigaction` itself: Python's `signal` module works on the main thread
only and cannot represent an action that C code installed.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType

from .loading import library_at

_STRUCT = 512  # no platform's struct sigaction is larger
_LOOK = 1e-4  # seconds
PYTHONS = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGPIPE,
    signal.SIGALRM,
    signal.SIGCHLD,
    signal.SIGUSR1,
    signal.SIGTSTP,
)

_sigaction = ctypes.CDLL(None).sigaction
_sigaction.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]


@dataclass(frozen=True)
class Action:
    """What the process does on a signal, as the C library tells it. Equal if the handler is the same."""

    signal: int
    handler: bytes  # the address, which every platform has in front
    content: bytes = field(compare=False, repr=False)  # has uninitialised parts

    @classmethod
    def current(cls, number: int) -> Action:
        buffer = ctypes.create_string_buffer(_STRUCT)
        _sigaction(number, None, buffer)
        return cls(number, buffer.raw[: ctypes.sizeof(ctypes.c_void_p)], buffer.raw)

    def is_julias(self) -> bool:
        """Whether it belongs to a Julia, whichever."""
        return "libjulia" in os.path.basename(library_at(int.from_bytes(self.handler, sys.byteorder)))

    def install(self) -> None:
        _sigaction(self.signal, ctypes.create_string_buffer(self.content, _STRUCT), None)


@contextmanager
def pythons_kept() -> Iterator[None]:
    """Around Julia's start: what Python owned before, it owns after, on this thread's mask as well.

    Julia installs its actions some time before it is there, and a Ctrl-C that meets one is lost: so they are
    put back as soon as they are seen, by a thread that looks every tenth of a millisecond.
    """
    before = [Action.current(number) for number in PYTHONS]
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    started = threading.Event()
    keeper = threading.Thread(target=_keep, args=(before, started), name="pybridge-signals", daemon=True)
    keeper.start()
    try:
        yield
    finally:
        started.set()
        keeper.join()
        _put_back(before)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _keep(actions: Sequence[Action], started: threading.Event) -> None:
    while not started.wait(_LOOK):
        _put_back(actions)


def _put_back(actions: Sequence[Action]) -> None:
    for action in actions:
        if Action.current(action.signal) != action:
            action.install()


@contextmanager
def interrupt_deferred() -> Iterator[None]:
    """Ctrl-C is heard at the end. It is the main thread alone that hears it, whichever thread this is."""
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    heard: list[tuple[int, FrameType | None]] = []
    signal.signal(signal.SIGINT, lambda *given: heard.append(given))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if heard:
            handler(*heard[0])


def give_back_to_python() -> None:
    """Ctrl-C and termination to Python again, after something else has started Julia on this thread."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    if threading.current_thread() is threading.main_thread():
        for number in numbers:
            if (handler := signal.getsignal(number)) is not None:
                signal.signal(number, handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, numbers)


@dataclass(frozen=True)
class Guard:
    """Keeps Julia's SIGSEGV action in place. Made right after Julia's start.

    one_thread: Julia has no second thread that a collection would stop, and so cedes to another Julia.
    """

    action: Action
    one_thread: bool = False

    @classmethod
    def after_start(cls, *, one_thread: bool = False) -> Guard:
        return cls(Action.current(signal.SIGSEGV), one_thread)

    def keep(self) -> None:
        current = Action.current(signal.SIGSEGV)
        if current != self.action and not (self.one_thread and current.is_julias()):
            self.action.install()
