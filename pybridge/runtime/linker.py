"""Object files made into shared libraries, by whatever linker there is."""

from __future__ import annotations

import functools
import shutil
import subprocess
import sys
from pathlib import Path

_PATIENCE = 60.0
# By how soon each is done; a compiler takes several times as long as a linker.
_COMMANDS = ("ld.lld", "ld", "cc", "gcc", "clang")


@functools.cache
def linker() -> str | None:
    """The program that links; None where there is none that is known to work."""
    if not sys.platform.startswith("linux"):
        return None
    return next(filter(None, map(shutil.which, _COMMANDS)), None)


def link(source: Path, target: Path) -> str | None:
    """Make a shared library of an object file; if that fails, why."""
    command = linker()
    if command is None:
        return "there is no linker (ld, lld or a C compiler)"
    try:
        done = subprocess.run(
            [command, "-shared", "-o", str(target), str(source)],
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=_PATIENCE,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        return str(problem)
    return None if done.returncode == 0 else " ".join(done.stderr.split())[-300:]
