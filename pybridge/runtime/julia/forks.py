"""Holding off forks while another process is started.

A child that is forked while another thread starts a process inherits the pipes to it. Their ends then stay
open as long as the child lives, and the thread, which reads until they are closed, waits as long.
"""

from __future__ import annotations

import os
import threading
from contextlib import AbstractContextManager

_STARTING = threading.RLock()
os.register_at_fork(
    before=_STARTING.acquire, after_in_parent=_STARTING.release, after_in_child=_STARTING.release
)


def held_off() -> AbstractContextManager[bool]:
    """Forks by other threads wait until this ends. What runs in it must not wait for other threads."""
    return _STARTING
