"""Object files made into shared libraries, by whatever linker there is."""

from __future__ import annotations

import functools
import shutil
import subprocess
import sys
from pathlib import Path

from .julia import forks

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
        with forks.held_off():
            linking = subprocess.Popen(
                [command, "-shared", "-o", str(target), str(source)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
            )
    except OSError as problem:
        return str(problem)
    with linking:
        try:
            _, said = linking.communicate(timeout=_PATIENCE)
        except subprocess.TimeoutExpired:
            linking.kill()
            return f"{command} did not end within {_PATIENCE:g} s"
    words = said.decode("utf-8", "replace").split()
    return None if linking.returncode == 0 else " ".join(words)[-300:]
