"""What Julia's answers and its machine code depend on apart from the Program: keys of what is on disk."""

from __future__ import annotations

import functools
import hashlib
import os
import platform

from . import julia
from .julia.probe import Installation
from .julia.processor import processor_flags
from .julia.source import Package, jaxprad


def key(kind: str, *parts: str) -> str:
    """A key of everything in `parts`, and of the Julia, JaxprAD and the processor that this process uses.

    Raises what the search for a Julia ends with.
    """
    content = "\0".join([_machine(), _sources(jaxprad()), _identity(julia.installation()), *parts])
    return f"{kind} {hashlib.sha256(content.encode()).hexdigest()}"


@functools.cache
def _sources(package: Package) -> str:
    return package.digest("src")


@functools.cache
def _identity(installation: Installation) -> str:
    library = installation.libjulia.stat()
    return f"{installation.version} {installation.libjulia} {library.st_size} {library.st_mtime_ns}"


@functools.cache
def _machine() -> str:
    """The processor, and how many: loops are cut into chunks by that. Settings may say otherwise."""
    settings = [os.environ.get(name, "") for name in ("JULIA_CPU_TARGET", "JULIA_CPU_THREADS")]
    facts = [platform.system(), platform.machine(), str(os.cpu_count()), *settings]
    return " ".join([*facts, *sorted(processor_flags())])
