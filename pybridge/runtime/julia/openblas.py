"""An OpenBLAS older than the processor takes it for an ancient one: it is told what the processor can do."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .probe import Installation

_VARIABLE = "OPENBLAS_CORETYPE"
# The kernels of OpenBLAS by what they need, the fastest first.
_CORES = {
    "SkylakeX": {"avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl", "fma"},
    "Haswell": {"avx2", "fma"},
}


@contextmanager
def told_the_processor(julia: Installation) -> Iterator[None]:
    """While Julia starts, and with it its OpenBLAS. Newer Julias bring one that knows better by itself."""
    core = core_type(processor_flags()) if julia.release < (1, 9) else None
    if core is None or _VARIABLE in os.environ:
        yield
        return
    os.environ[_VARIABLE] = core
    try:
        yield
    finally:
        os.environ.pop(_VARIABLE, None)


def core_type(flags: set[str]) -> str | None:
    """The kernels for a processor with these flags; None where OpenBLAS is left to choose."""
    return next((core for core, needs in _CORES.items() if needs <= flags), None)


def processor_flags() -> set[str]:
    """What Linux says that every core can do; empty on other systems."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return set()
    return set(next((line.partition(":")[2].split() for line in lines if line.startswith("flags")), []))
