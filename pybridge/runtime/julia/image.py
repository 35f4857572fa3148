"""A system image with JaxprAD compiled in, for Julias before 1.9, which keep no native code of packages.

Without it the first derivative in a process costs several seconds of compilation, with it milliseconds.
Built once by `pybridge setup` for a Julia and the package's sources, into the user's cache.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from ...cache import Usage, user_folder
from ...errors import JuliaUnusable
from . import source
from .debian import Progress
from .discovery import find
from .probe import Installation
from .source import Package

_PATIENCE = 1800.0  # seconds for each of the two programs that make an image
_BUILDING = "building-"


def wanted(julia: Installation, package: Package) -> bool:
    """Whether the package has a script for an image and this Julia gains: newer ones cache native code."""
    return julia.release < (1, 9) and _script(package).is_file()


def with_image(julia: Installation, package: Package) -> Installation:
    """The Julia, to be started from the image built for it and the package, if there is one."""
    path = _path(julia, package)
    return replace(julia, image=path) if wanted(julia, package) and path.is_file() else julia


def build(julia: Installation, package: Package, report: Progress) -> Path | None:
    """Build the image unless it is there; None, with a word to `report`, where no C compiler can link it.

    Raises JuliaUnusable where Julia fails at it.
    """
    target, script = _path(julia, package), _script(package)
    if target.is_file():
        return target
    linker = shutil.which("cc") or shutil.which("gcc")
    if linker is None:
        report("no C compiler: JaxprAD stays uncompiled, each process's first derivative takes seconds", None)
        return None
    target.parent.mkdir(parents=True, exist_ok=True)
    _drop_abandoned()
    with tempfile.TemporaryDirectory(prefix=_BUILDING, dir=target.parent) as folder:
        unlinked, linked = Path(folder, "image.o"), Path(folder, "image.so")
        report("compiling JaxprAD into a system image (minutes of one core, once)", None)
        _run(
            [
                str(julia.executable),
                "--startup-file=no",
                f"--sysimage={julia.image}",
                # With vectors as values in such an image, of the workload's kernels say, Julia would
                # compile for processors of every kind from then on.
                "-Cgeneric",
                f"--output-o={unlinked}",
                str(script),
                str(package.folder),
            ]
        )
        whole = ["-Wl,--whole-archive", str(unlinked), "-Wl,--no-whole-archive"]
        _run([linker, "-shared", f"-o{linked}", *whole, str(julia.libjulia)])
        os.replace(linked, target)  # whole or not at all, however many build at once
    return target


def drop_outdated() -> Usage:
    """Remove the images of other Julias and other versions of JaxprAD, and what is left of builds that were
    killed; how many images, and the bytes of all.
    """
    found = find()
    current = _path(found.julia, source.jaxprad()) if found.julia is not None else None
    dropped, size = 0, _drop_abandoned()
    for path in sorted(_folder().glob("*.so")):
        if path != current:
            size += path.stat().st_size
            dropped += 1
            path.unlink(missing_ok=True)
    return Usage(dropped, size)


def _drop_abandoned() -> int:
    """Remove the folders of builds that were killed; their bytes, some 250 million each."""
    size = 0
    for folder in _folder().glob(f"{_BUILDING}*"):
        with contextlib.suppress(OSError):  # another process drops it too
            if time.time() - folder.stat().st_mtime > 2 * _PATIENCE:  # no build takes so long
                size += sum(path.stat().st_size for path in folder.iterdir())
                shutil.rmtree(folder)
    return size


def _folder() -> Path:
    return user_folder() / "images"


def _script(package: Package) -> Path:
    return package.folder / "image" / "build.jl"


def _path(julia: Installation, package: Package) -> Path:
    content = f"{julia.version} {julia.libjulia} {package.digest('src', 'image')}"
    digest = hashlib.sha256(content.encode())
    return _folder() / f"{package.name}-{julia.version}-{digest.hexdigest()[:16]}.so"


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PATIENCE,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as reason:
        raise JuliaUnusable(f"building the system image failed: {reason}") from reason
    if done.returncode:
        raise JuliaUnusable(f"building the system image failed: {' '.join(done.stderr.split())[-400:]}")
