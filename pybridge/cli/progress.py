"""What a command is doing, on stderr."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

from rich.console import Console

_SILENCE = 10.0  # seconds between lines about what is being done, where the output is no terminal


@contextlib.contextmanager
def status(title: str) -> Iterator[Callable[[str], None]]:
    """Shows in one line of a terminal what is being done, and elsewhere nothing."""
    with Console(stderr=True).status(title) as shown:
        yield lambda doing: shown.update(f"{title}: {doing}")


@contextlib.contextmanager
def doing(title: str) -> Iterator[Callable[[str], None]]:
    """Shows on stderr what is being done: in one line of a terminal, else a line now and then."""
    if Console(stderr=True).is_terminal:
        with status(title) as progress:
            yield progress
        return
    print(title, file=sys.stderr, flush=True)
    last = time.monotonic()

    def tell(doing: str) -> None:
        nonlocal last
        if time.monotonic() > last + _SILENCE:
            last = time.monotonic()
            print(f"{title}: {doing}", file=sys.stderr, flush=True)

    yield tell
