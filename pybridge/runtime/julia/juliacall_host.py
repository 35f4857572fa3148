"""Julia by way of juliacall, so that scripts can share Julia objects with us.

Either we ask juliacall to start it, on the control thread; or the user has started it, and the control
thread joins as one more Julia thread. Then the thread that Julia started on, usually Python's main
one, has to stand in a GC-safe region while it is outside Julia: PythonCall's entry points leave and
re-enter it by themselves.
"""

from __future__ import annotations

import atexit
import importlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...errors import JuliaUnusable
from . import embed, signals
from .hosted import Hosted
from .libjulia import LibJulia
from .probe import Installation
from .stdio import stdio_blocking


def prepare(julia: Installation) -> Callable[[], Hosted]:
    """The result starts Julia through juliacall on the thread that calls it."""
    embed.refuse_second(julia.libjulia)
    # only defaults: a value that was set before is intended
    os.environ.setdefault("PYTHON_JULIACALL_EXE", str(julia.executable))
    os.environ.setdefault("PYTHON_JULIACALL_PROJECT", str(julia.project))
    # without its handlers Julia crashes as soon as two threads are in it
    os.environ.setdefault("PYTHON_JULIACALL_HANDLE_SIGNALS", "yes")
    os.environ.setdefault("PYTHON_JULIACALL_THREADS", os.environ.get("JULIA_NUM_THREADS", "1"))

    def start() -> Hosted:
        with stdio_blocking(), signals.pythons_kept():
            juliacall = importlib.import_module("juliacall")
        _require_handlers(juliacall)
        library = LibJulia(Path(juliacall.CONFIG["libpath"]), running=True)
        library.join()
        library.share_event_loop()
        _resume_threads_at_the_end(juliacall, library)
        return Hosted(library, signals.Guard.after_start(), library.run_hooks)  # juliacall does the rest

    return start


def prepare_to_attach(julia: Installation) -> Callable[[], Hosted]:
    """The result makes the thread that calls it one of the Julia that juliacall runs."""
    juliacall = importlib.import_module("juliacall")
    embed.refuse_second(julia.libjulia)
    _require_handlers(juliacall)
    library = LibJulia(Path(juliacall.CONFIG["libpath"]), running=True)
    if not library.on_first_thread():
        raise JuliaUnusable(
            "juliacall started Julia on another thread than this one. The first use of pybridge must come "
            "from the thread that imported juliacall; after that every thread may use it"
        )
    signals.give_back_to_python()
    library.join()
    library.share_event_loop()
    _resume_threads_at_the_end(juliacall, library)
    region = library.parked()
    region.__enter__()
    # hooks run in reverse order: this one before juliacall's
    atexit.register(region.__exit__, None, None, None)
    guard = signals.Guard.after_start()

    def join() -> Hosted:
        library.adopt()
        return Hosted(library, guard, _nothing)

    return join


def _resume_threads_at_the_end(juliacall: Any, library: LibJulia) -> None:
    """After juliacall's exit hook, which has been registered already, so that no other can come after it."""
    opened = juliacall.CONFIG["lib"]
    end = opened.jl_atexit_hook

    def end_and_resume(status: int) -> None:
        end(status)
        library.resume_threads()

    opened.jl_atexit_hook = end_and_resume


def _require_handlers(juliacall: Any) -> None:
    if juliacall.CONFIG.get("opt_handle_signals") != "yes":
        raise JuliaUnusable(
            "juliacall started Julia without its signal handlers, and so it crashes when XLA's threads enter "
            "it. Set PYTHON_JULIACALL_HANDLE_SIGNALS=yes before `import juliacall`, or use pybridge first"
        )


def _nothing() -> None:
    pass
