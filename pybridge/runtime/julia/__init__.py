"""The Julia runtime: finding Julia, starting it in this process, and sending it requests.

Knows nothing of what requests mean. Importing it does no work; the first `request` starts Julia.
"""

from collections.abc import Sequence
from typing import Any

from .discovery import Discovery, Step, find, found
from .probe import Installation
from .runtime import Runtime, Status

__all__ = [
    "Discovery",
    "Installation",
    "Runtime",
    "Status",
    "Step",
    "check_process",
    "claim",
    "find",
    "installation",
    "request",
    "start",
    "status",
]

_RUNTIME = Runtime()


def request(
    command: str,
    body: str = "",
    *,
    arguments: Sequence[str] = (),
    doing: str = "",
    users: bool = False,
    quiet: bool = False,
    memory: Sequence[Any] = (),
) -> str:
    """Send one request to JaxprAD in Julia and return its answer; the first one starts Julia.

    doing: what stderr says of it when it takes longer than two seconds; nothing by default.
    users: it runs the user's code. quiet: `doing` is for others who wait, not for this caller.
    memory: arrays whose addresses are in the request.

    Any thread may call. Raises JuliaError for an error in Julia, JuliaNotFound or JuliaUnusable where
    there is no Julia that works, ForkedProcess in a child forked after the start or during it, JuliaBusy
    while the user's code runs on after an interrupt. KeyboardInterrupt ends the request; the next one works.
    """
    return _RUNTIME.request(
        command, body, arguments=arguments, doing=doing, users=users, quiet=quiet, memory=memory
    )


def installation() -> Installation:
    """The Julia that runs in this process, or would. Starts nothing.

    Raises JuliaNotFound or JuliaUnusable where there is none that works.
    """
    return status().julia or found()


def claim() -> None:
    """Kernels of Julia's are in use from now on, as if it had been started: for `check_process`."""
    _RUNTIME.claim()


def check_process() -> None:
    """Raises ForkedProcess in a child forked after the start, where neither Julia nor XLA can run."""
    _RUNTIME.check_process()


def start() -> Status:
    """Start Julia and load JaxprAD now, rather than at the first request."""
    return _RUNTIME.start()


def status() -> Status:
    """What of Julia runs in this process now. Starts nothing."""
    return _RUNTIME.status()
