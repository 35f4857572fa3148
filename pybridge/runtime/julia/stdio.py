"""The standard streams, which this process shares with Julia."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def stdio_blocking() -> Iterator[None]:
    """Julia makes its standard streams non-blocking, and with them Python's: big prints would then fail.

    So does another Julia that has inherited them, such as the one that precompiles.
    """
    flags = {}
    for stream in (0, 1, 2):
        try:
            flags[stream] = fcntl.fcntl(stream, fcntl.F_GETFL)
        except OSError:  # closed: Julia opens /dev/null in its place
            continue
    try:
        yield
    finally:
        for stream, before in flags.items():
            fcntl.fcntl(stream, fcntl.F_SETFL, before)
