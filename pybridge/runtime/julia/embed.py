"""libjulia embedded directly, for machines without PythonCall."""

from __future__ import annotations

import importlib.abc
import os
import re
import signal
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

from ...errors import JuliaUnusable
from . import processor, signals
from .hosted import Hosted
from .libjulia import LibJulia
from .probe import Installation
from .stdio import stdio_blocking

_LIBJULIA = re.compile(r"/libjulia(-debug)?[0-9.]*\.(so|dylib)[0-9.]*$")


def prepare(julia: Installation) -> Callable[[], Hosted]:
    """Check what can be checked now; the result starts Julia on the thread that calls it."""
    refuse_second(julia.libjulia)
    return partial(_start, julia)


def _start(julia: Installation) -> Hosted:
    # jl_init fixes the number of threads: say it, rather than leave it to a version's default
    threads = os.environ.get("JULIA_NUM_THREADS", "1")
    library = LibJulia(julia.libjulia)
    with stdio_blocking(), signals.pythons_kept(), processor.told_to_openblas(julia):
        options = [f"--threads={threads}", "--handle-signals=yes", "--startup-file=no"]
        library.initialise(julia.bindir, julia.image, [*options, *processor.options(julia)])
    sys.meta_path.insert(0, _NoSecondHost(julia))
    guard = signals.Guard.after_start(one_thread=library.uint64("UInt64(Threads.nthreads())") == 1)
    return Hosted(library, guard, library.finish)


def refuse_second(wanted: Path) -> None:
    """Refuse, naming both, where this process has a whole other Julia: the two share signals and libraries.

    Libraries made by juliac bring one that leaves signals alone, and has another release or another name.
    """
    signals_taken = signals.Action.current(signal.SIGSEGV).is_julias()
    for mapped in mapped_libjulias():
        if mapped != wanted.resolve() and (signals_taken or _release(mapped) in (None, _release(wanted))):
            raise JuliaUnusable(
                f"this process already has another Julia loaded, {mapped}; it cannot also load {wanted}. "
                "Use one of them in another process, or one Julia for all: set PYBRIDGE_JULIA to the "
                "executable that belongs to the first"
            )


def _release(libjulia: Path) -> str | None:
    """1.12, say; libraries of one release have the same names for the loader."""
    found = re.search(r"\.so\.(\d+\.\d+)|\.(\d+\.\d+)[.0-9]*\.dylib", libjulia.resolve().name)
    return found and (found[1] or found[2])


def mapped_libjulias() -> set[Path]:
    try:
        lines = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:  # not Linux: the check is a convenience there
        return set()
    paths = {line.split(maxsplit=5)[-1] for line in lines if _LIBJULIA.search(line)}
    return {Path(path).resolve() for path in paths}


class _NoSecondHost(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Turns a later `import juliacall`, which would start a second Julia and crash, into a clear error.

    Looking whether there is a juliacall stays possible; only its code is not run.
    """

    def __init__(self, julia: Installation):
        self._julia = julia

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != "juliacall" or os.environ.get("PYTHON_JULIACALL_INIT") == "no":
            return None
        return ModuleSpec(name, self)

    def exec_module(self, module: ModuleType) -> None:
        raise ImportError(
            f"pybridge has started {self._julia.executable} in this process without PythonCall, so "
            "juliacall cannot join it. Import juliacall before pybridge's first use, "
            "or install PythonCall for this Julia"
        )
