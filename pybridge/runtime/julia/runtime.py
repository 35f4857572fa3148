"""The one Julia of this process: started at first use, asked through `request`, ended at exit."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import ForkedProcess
from . import protocol, signals, source
from .discovery import Discovery, Host, find
from .ending import threads_ended
from .probe import Installation

if TYPE_CHECKING:
    from .control import Control
    from .hosted import Hosted, Service


@dataclass(frozen=True)
class Status:
    """What runs in this process now."""

    started: bool
    how: Host | None = None
    julia: Installation | None = None
    package: Path | None = None


@dataclass
class _Live:
    """A started Julia. `hosted` and `service` are set on the control thread."""

    how: Host
    julia: Installation
    loading: str  # what a wait for the package says
    control: Control | None = None
    hosted: Hosted | None = None
    service: Service | None = None


class Runtime:
    """`package` and `search` are arguments so that tests can serve with a package of their own."""

    def __init__(
        self, package: Callable[[], source.Package] = source.jaxprad, search: Callable[[], Discovery] = find
    ):
        self._package, self._search = package, search
        self._starting = threading.RLock()
        self._live: _Live | None = None
        self._owner: int | None = None  # the process that has begun to use Julia or its kernels
        # A fork does not wait for a start on another thread, which may itself be waiting for that fork to
        # end: the package filelock, which juliapkg imports, has its users wait.
        os.register_at_fork(after_in_child=self._after_fork)

    def request(
        self,
        command: str,
        body: str = "",
        *,
        arguments: Sequence[str] = (),
        doing: str = "",
        users: bool = False,
        quiet: bool = False,
        memory: Sequence[Any] = (),
    ) -> str:
        """Send one request to the package and give its answer's body. Any thread may call.

        doing, users, quiet: as for `Control.call`. memory: arrays whose addresses are in the request, which
        Julia may use for a while after an interrupt.
        """
        message = protocol.encode(command, arguments, body)
        live = self._started()
        assert live.control is not None
        answer = live.control.call(
            lambda: self._serve(live, message, memory),
            lambda: doing if live.service else live.loading,
            users=users,
            quiet=quiet and live.service is not None,
        )
        return protocol.decode(answer)

    def start(self) -> Status:
        """Start Julia and load the package now, rather than at the first request."""
        live = self._started()
        assert live.control is not None
        live.control.call(lambda: self._loaded(live), lambda: live.loading)
        return self.status()

    def status(self) -> Status:
        live = self._live
        if live is None or live.hosted is None or self._forked():
            return Status(False)
        return Status(True, live.how, live.julia, live.service.path if live.service else None)

    def _loaded(self, live: _Live) -> tuple[Hosted, Service]:
        assert live.hosted is not None
        if live.service is None:
            live.service = live.hosted.load(self._package())
        return live.hosted, live.service

    def _serve(self, live: _Live, message: str, memory: Sequence[Any]) -> str:
        """The answer. `memory` lives as long as the work, which holds it."""
        hosted, service = self._loaded(live)
        return hosted.serve(service, message)

    def claim(self) -> None:
        """Julia's kernels are in use from now on: a child that is forked is refused, Julia started or not."""
        self.check_process()
        self._owner = os.getpid()

    def check_process(self) -> None:
        """Raises ForkedProcess in a child forked after the first use, or while another thread was at it."""
        if self._forked():
            raise ForkedProcess(
                f"Julia, or its kernels, were in use in process {self._owner}, from which {os.getpid()} was "
                "forked, and neither they nor XLA survive that; use the start method 'spawn' or "
                "'forkserver', or make the first use of pybridge after the fork"
            )

    def _started(self) -> _Live:
        self.check_process()
        with self._starting:
            if self._live is None or (self._live.control and self._live.control.failed):
                # Said before anything is looked for: what a thread holds at a fork, such as the locks of
                # modules it imports, stays locked in the child for ever.
                before, self._owner = self._owner, os.getpid()
                try:
                    live, control = self._prepared()
                    with signals.interrupt_deferred():  # a Julia that starts is known to have been started
                        control.start()
                        self._live = live
                finally:
                    if self._live is None:
                        self._owner = before
            return self._live

    def _prepared(self) -> tuple[_Live, Control]:
        """A Julia that its control is about to start."""
        # Not imported where all kernels are in files: Julia is not started then.
        from . import hosts, image
        from .control import Control

        found = self._search()
        julia = found.require()
        if julia.untried:
            warnings.warn(f"{julia.untried}; PYBRIDGE_JULIA may name another", RuntimeWarning, stacklevel=2)
        package, start_from, compiled = self._package(), julia, True
        if found.host == "embedded" and image.wanted(julia, package):
            start_from = image.with_image(julia, package)
            compiled = start_from != julia
        live = _Live(found.host, julia, _loading(package.name, compiled))
        start = hosts.PREPARE[live.how](start_from)

        def begin() -> Hosted:
            live.hosted = start()
            # Hooks run in reverse order, and juliacall has just registered one that ends Julia: this has
            # to come before it. The one registered below is for an exit during the start.
            atexit.register(self._exit)
            return live.hosted

        def cancel() -> None:
            if live.service is not None:
                live.service.cancelled.value = 1

        live.control = Control(begin, cancel)
        atexit.register(self._exit)
        if live.how == "juliacall":
            _before_exit_hooks(live.control.wait_for_start)
        return live, live.control

    def _exit(self) -> None:
        live = self._live
        if live is None or live.control is None or self._forked():
            return
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        live.control.close()
        threads_ended()

    def _forked(self) -> bool:
        return self._owner not in (None, os.getpid())

    def _after_fork(self) -> None:
        self._starting = threading.RLock()  # a thread that is gone may have held the other


def _before_exit_hooks(wait: Callable[[], None]) -> None:
    """Python does so at its exit, before it runs hooks.

    While it starts Julia, juliacall registers one that ends it, which from 1.12 on waits for the thread that
    starts it: and this one for the interpreter, which the hook holds. Only what `concurrent.futures` uses
    comes before all hooks.
    """
    register = getattr(threading, "_register_atexit", None)
    with contextlib.suppress(RuntimeError):  # Python is exiting already
        if register is not None:
            register(wait)


def _loading(package: str, compiled: bool) -> str:
    """What a wait for the package says. `compiled`: whether what Julia compiles now is kept."""
    when = (
        "when that is for the first time" if compiled else "in every process until `pybridge setup` has run"
    )
    return f"loading {package} into Julia, which compiles it {when}"
