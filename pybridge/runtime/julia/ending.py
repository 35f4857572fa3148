"""The end of the process while daemon threads still call kernels."""

from __future__ import annotations

import contextlib
import threading
import time

OWN = "pybridge-"  # what the names of pybridge's own threads begin with, which call no kernels
_LAST_WORDS = 0.3  # seconds that daemon threads have to return from what was refused


def threads_ended() -> None:
    """Give daemon threads the time to raise what a refused kernel makes them raise.

    One that asks for Python's lock only once the interpreter is gone would be ended inside jaxlib, and the
    process with it.
    """
    deadline = time.monotonic() + _LAST_WORDS
    for thread in threading.enumerate():
        # Threads that are not Python's, which have only called it, cannot be joined.
        with contextlib.suppress(AssertionError, RuntimeError):
            if thread.daemon and not thread.name.startswith(OWN):
                thread.join(max(0.0, deadline - time.monotonic()))
