"""The one thread that Julia runs on.

Whatever pybridge asks of Julia happens here, request after request, whichever thread asks. Between requests
the thread stands in a GC-safe region, so that collections started by other threads do not wait for it,
and looks up now and then to give Julia's own timers and tasks a turn.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from ...errors import JuliaBusy, JuliaError
from .waiting import wait

_TICK = 0.05  # seconds between two looks at Julia's tasks
_NUDGE = 0.02  # seconds between two reminders to a cancelled request
_GRACE = 0.5  # seconds that an interrupted function has to end before the next request is refused
_PATIENCE = 10.0  # seconds that a request still running at exit has to end


class Julia(Protocol):
    """A started Julia as the control thread sees it: all of it is called on that thread only."""

    def parked(self) -> Any: ...
    def guard(self) -> None: ...
    def tick(self) -> None: ...
    def finish(self) -> None: ...


@dataclass(eq=False)
class Job:
    """One piece of work for the control thread, and the place where its outcome appears.

    doing: what it does, for those who wait. users: it runs the user's code, which need not end when told to.
    """

    work: Callable[[], Any]
    doing: Callable[[], str] = lambda: ""
    users: bool = False
    begun: float = field(default_factory=time.time)
    done: threading.Event = field(default_factory=threading.Event)
    result: Any = None
    error: BaseException | None = None
    abandoned: bool = False

    def run(self) -> None:
        try:
            self.result = self.work()
        except BaseException as problem:  # the thread must outlive whatever a request does
            self.error = problem

    def outcome(self) -> Any:
        if self.error is not None:
            raise self.error.with_traceback(None)  # each waiter gets a traceback of its own
        return self.result


class Control:
    """Starts Julia on a thread of its own and runs jobs there. `cancel` asks the running one to end."""

    def __init__(self, start: Callable[[], Julia], cancel: Callable[[], None]):
        self._start, self._cancel = start, cancel
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._current: Job | None = None
        self._switching = threading.Lock()  # held while the current job changes, and while it is cancelled
        self._closed = False
        self._started = Job(lambda: None)
        self._ended = threading.Event()
        # a daemon, because Python joins all others before the exit hooks that end this one
        self._thread = threading.Thread(target=self._live, name="pybridge-julia", daemon=True)

    def start(self) -> None:
        """Once, before any call."""
        self._thread.start()

    def wait_for_start(self) -> None:
        """Return once Julia runs, or has failed to start."""
        while self._thread.is_alive() and not self._started.done.wait(_TICK):
            pass

    @property
    def failed(self) -> bool:
        return self._started.error is not None

    def call(
        self, work: Callable[[], Any], doing: Callable[[], str], *, users: bool = False, quiet: bool = False
    ) -> Any:
        """The value of `work()` on the control thread; KeyboardInterrupt ends the wait and the work.

        doing: what the caller is told while that takes long; nothing of this work if `quiet`.
        users: it runs the user's code. Raises JuliaBusy while other such code runs on after an interrupt.
        """
        if threading.current_thread() is self._thread:  # Julia called Python, which called us
            return work()
        wait(self._started.done, lambda: "starting Julia")
        self._started.outcome()
        job = Job(work, doing, users)
        self._refuse_behind_interrupted()
        try:
            with self._switching:
                if self._closed:
                    raise JuliaError("Python is exiting; Julia takes no more requests", kind="Exiting")
                self._jobs.put(job)
            wait(job.done, lambda: self._told(job, quiet))
        except KeyboardInterrupt:
            self._abandon(job)
            raise
        return job.outcome()

    def _refuse_behind_interrupted(self) -> None:
        running = self._current
        if running is None or not (running.users and running.abandoned) or running.done.wait(_GRACE):
            return
        begun = time.strftime("%H:%M:%S", time.localtime(running.begun))
        raise JuliaBusy(
            f"Julia is still {running.doing()}, since {begun}: that was interrupted, and cannot be stopped "
            "from outside. Wait until it has ended, or start another process. Code that calls "
            "JaxprAD.check_cancelled() now and then (using JaxprAD) ends where it is interrupted."
        )

    def _told(self, job: Job, quiet: bool) -> str:
        """What the caller that waits for the job is told now."""
        running = self._current
        if running is None or running is job:
            return "" if quiet else job.doing()
        what = running.doing() or "another request"
        if running.abandoned:
            return f"waiting for Julia, which ends what was interrupted ({what})"
        return f"waiting for Julia, which is {what} for another thread"

    def close(self) -> bool:
        """Refuse new jobs, end the running one, run Julia's exit hook. False when that could not be done."""
        with self._switching:
            running = self._current
            if not self._closed:
                self._closed = True
                self._jobs.put(None)
        deadline = time.monotonic() + _PATIENCE
        if running is not None:
            # Only a daemon thread can still be waiting for it now, and that will never see its result. It is
            # cancelled from this thread: a Python that exits starts no other.
            running.abandoned = True
            while self._cancelled(running) and time.monotonic() < deadline:
                if self._ended.wait(_NUDGE):
                    return True
        return self._ended.wait(max(0.0, deadline - time.monotonic()))

    def _abandon(self, job: Job) -> None:
        job.abandoned = True
        if not self._cancelled(job):
            return
        # A request clears the flag when it starts, which may happen after we have set it; so keep setting it.
        threading.Thread(target=self._nudge, args=(job,), name="pybridge-cancel", daemon=True).start()

    def _nudge(self, job: Job) -> None:
        while not job.done.wait(_NUDGE) and self._cancelled(job):
            pass

    def _cancelled(self, job: Job) -> bool:
        with self._switching:
            if self._current is job:
                self._cancel()
            return self._current is job

    def _live(self) -> None:
        started = self._started
        try:
            julia = self._start()
        except BaseException as problem:
            started.error = problem
            started.done.set()
            self._ended.set()
            return
        started.done.set()
        while (job := self._next(julia)) is not None:
            if not job.abandoned:
                julia.guard()
                job.run()
            with self._switching:
                self._current = None
                # Who still waits at exit is a daemon thread: woken, it could only print a useless traceback.
                if not self._closed:
                    job.done.set()
        julia.finish()
        with julia.parked():
            self._ended.set()
            # Never return: the end of a thread runs destructors of Julia's thread state, and Python ends
            # threads that ask for the GIL while it finalizes. Nobody releases this lock.
            gate = threading.Lock()
            gate.acquire()
            gate.acquire()

    def _next(self, julia: Julia) -> Job | None:
        while True:
            try:
                with julia.parked():
                    job = self._jobs.get(timeout=_TICK)
            except queue.Empty:
                julia.guard()
                julia.tick()
                continue
            with self._switching:
                if job is not None:
                    job.begun = time.time()
                self._current = job
            return job
