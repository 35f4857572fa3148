"""Waits for Julia, with a word on stderr when one takes long."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from typing import TextIO

SETTING = "PYBRIDGE_PROGRESS"
"""The environment variable that turns the words off: `PYBRIDGE_PROGRESS=off`."""

_SILENCE = 2.0  # seconds of waiting that need no word
_REFRESH = 0.5


def wait(done: threading.Event, doing: Callable[[], str]) -> None:
    """Wait for the event, as long as it takes.

    After two seconds stderr says what is going on, `doing()`, if that is anything: in a terminal with the
    seconds, for as long as it lasts; elsewhere in one line for each thing that takes so long. Daemon threads
    say nothing: Python ends them at exit wherever they are, and one that is writing then would take the lock
    of the stream with it.
    """
    if done.wait(_SILENCE):
        return
    stream = sys.stderr
    off = stream is None or os.environ.get(SETTING) == "off" or threading.current_thread().daemon
    if off:
        done.wait()
    elif doing() and stream.isatty() and threading.current_thread() is threading.main_thread():
        _with_display(done, doing)
    else:
        _with_lines(done, doing, stream)


def _with_lines(done: threading.Event, doing: Callable[[], str], stream: TextIO) -> None:
    said, now, since = "", doing(), time.monotonic() - _SILENCE
    waiting = True
    while waiting:
        if now and now != said and time.monotonic() - since >= _SILENCE:
            print(f"pybridge: {now}", file=stream, flush=True)
            said = now
        waiting = not done.wait(_REFRESH)
        if (next_ := doing()) != now:
            now, since = next_, time.monotonic()


def _with_display(done: threading.Event, doing: Callable[[], str]) -> None:
    from rich.console import Console  # here, because most processes never need it
    from rich.markup import escape

    begun = time.monotonic() - _SILENCE
    with Console(stderr=True).status("") as status:
        waiting = True
        while waiting:
            status.update(f"pybridge: {escape(doing())} ({time.monotonic() - begun:.0f} s)")
            waiting = not done.wait(_REFRESH)
