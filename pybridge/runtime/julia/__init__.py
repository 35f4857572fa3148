"""The Julia runtime: finding Julia, starting it in this process, and sending it requests.

Knows nothing of what requests mean. Importing it does no work; the first `request` starts Julia.
"""

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


request = _RUNTIME.request


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
