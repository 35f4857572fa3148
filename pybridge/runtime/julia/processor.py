"""The processor, as a Julia older than it must be told: what it does not know it takes for an ancient one."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Set
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from .probe import Installation

_VARIABLE = "OPENBLAS_CORETYPE"


@dataclass(frozen=True)
class Kind:
    """Processors as LLVM and OpenBLAS name them, and the flags that such a one has."""

    llvm: str
    openblas: str
    flags: frozenset[str]


_KINDS = (
    Kind(
        "skylake-avx512",
        "SkylakeX",
        frozenset({"avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl", "fma"}),
    ),
    Kind("haswell", "Haswell", frozenset({"avx2", "fma"})),
)
"""The widest vectors first."""


def options(julia: Installation) -> list[str]:
    """Julia's options for code that is compiled in this process.

    Where an image has routines with vectors in them, Julia leaves out the vectors that the image's processors
    lack, of a processor that it knows by no name of its own.
    """
    kind = _kind_for(julia)
    return [f"--cpu-target={kind.llvm}"] if kind else []


@contextmanager
def told_to_openblas(julia: Installation) -> Iterator[None]:
    """While Julia starts, and with it its OpenBLAS."""
    kind = _kind_for(julia)
    if kind is None or _VARIABLE in os.environ:
        yield
        return
    os.environ[_VARIABLE] = kind.openblas
    try:
        yield
    finally:
        os.environ.pop(_VARIABLE, None)


def _kind_for(julia: Installation) -> Kind | None:
    """None where Julia is left to find out: newer ones know better by themselves."""
    return kind_of(processor_flags()) if julia.release < (1, 9) else None


def kind_of(flags: Set[str]) -> Kind | None:
    """The widest kind whose flags all are there."""
    return next((kind for kind in _KINDS if kind.flags <= flags), None)


@functools.cache
def processor_flags() -> frozenset[str]:
    """What Linux says that every core can do; empty on other systems."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return frozenset()
    return frozenset(next((line.partition(":")[2].split() for line in lines if line.startswith("flags")), []))
