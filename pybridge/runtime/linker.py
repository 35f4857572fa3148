"""Object files made into shared libraries, by whatever linker there is."""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from .julia import forks

_PATIENCE = 60.0
_COMPILERS = ("cc", "gcc", "clang")
# By how soon each is done; a compiler takes several times as long as a linker.
_COMMANDS = ("ld.lld", "ld", *_COMPILERS)


@functools.cache
def linker() -> str | None:
    """The program that links; None where there is none that is known to work."""
    return _first(_COMMANDS)


def link(sources: Sequence[Path], target: Path) -> str | None:
    """Make a shared library of object files, in few segments; if that fails, why.

    The system bounds the mappings of a process, by 65 530 on Linux, and each segment of each kernel is one.
    What the files call of each other they call directly.
    """
    command = linker()
    options = ["-z", "noseparate-code", "-z", "norelro", "-Bsymbolic"]
    if command is not None and Path(command).name in _COMPILERS:
        options = ["-Wl," + ",".join(options)]
    return _run(command, ["-shared", *options, "-o", str(target), *map(str, sources)])


def link_for_shipping(sources: Sequence[Path], target: Path, libraries: Sequence[Path]) -> str | None:
    """Make a shared library that needs libc, libm and these libraries, and nothing else; if that fails, why.

    The system finds the libraries by the names that they have themselves, in their folders of now.
    """
    options = ["--no-undefined", "--as-needed", f"-soname={target.name}", "-z", "relro"]
    options += [f"-rpath={folder}" for folder in dict.fromkeys(library.parent for library in libraries)]
    files = [str(path) for path in (*sources, *libraries)]
    compiler = _first(_COMPILERS)
    if compiler is not None:  # it knows where libm is, and has functions that processors lack
        words = [*(f"-Wl,{option}" for option in options), "-nostartfiles"]
        return _run(compiler, ["-shared", *words, "-o", str(target), *files, "-lm"])
    return _run(linker(), ["-shared", *options, "-o", str(target), *files, *_system_libraries()])


def _first(commands: Sequence[str]) -> str | None:
    if not sys.platform.startswith("linux"):
        return None
    return next(filter(None, map(shutil.which, commands)), None)


def _system_libraries() -> list[str]:
    """libc and libm, as this process has them."""
    lines = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines()
    paths = {line.split(maxsplit=5)[5] for line in lines if line.count("/")}
    return sorted(path for path in paths if re.search(r"/lib[cm][.-][^/]*so[^/]*$", path))


def _run(command: str | None, words: Sequence[str]) -> str | None:
    if command is None:
        return "there is no linker (ld, lld or a C compiler)"
    try:
        with forks.held_off():
            linking = subprocess.Popen(
                [command, *words],
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
    reason = said.decode("utf-8", "replace").split()
    return None if linking.returncode == 0 else " ".join(reason)[-300:]
