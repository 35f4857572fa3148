"""Debian's own Julia: Debian 11 has 1.5.3, later ones have none, and it runs with their packages.

apt is pointed at lists and a source of its own in a temporary folder, so that the machine's sources,
lists and preferences stay as they are.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...errors import JuliaUnusable
from . import apt_sources

SUITE = "bullseye"  # the newest that has a package `julia`
_LIBUNWIND = "libunwind.so.8"
_BY_HAND = "install Julia 1.10 or newer yourself and put it on PATH or set PYBRIDGE_JULIA"

Progress = Callable[[str, float | None], None]  # what is going on, and the fraction done where known


@dataclass(frozen=True)
class Machine:
    """What decides whether this way is open."""

    system: dict[str, str]  # of os-release
    is_root: bool
    has_apt: bool
    sources: tuple[apt_sources.Source, ...]

    @classmethod
    def this(cls) -> Machine:
        return cls(
            _os_release(Path("/etc/os-release")),
            os.geteuid() == 0,
            shutil.which("apt-get") is not None,
            tuple(apt_sources.read(Path("/etc/apt"))),
        )

    def mirrors(self) -> list[apt_sources.Source]:
        """Debian's mirrors as this machine knows them, with the suite that has Julia."""
        if self.system.get("ID") != "debian" or not self.has_apt:
            name = self.system.get("PRETTY_NAME", "this system")
            raise JuliaUnusable(f"{name} is not Debian, so Debian's Julia cannot be had; {_BY_HAND}")
        codename = self.system.get("VERSION_CODENAME", "")
        mirrors = apt_sources.debian_mirrors(list(self.sources), codename)
        if not mirrors:
            raise JuliaUnusable(f"no apt source of this machine serves Debian's {codename} main; {_BY_HAND}")
        return [replace(mirror, suite=SUITE, components=("main",)) for mirror in mirrors]


def install(consent: bool, progress: Progress, machine: Machine | None = None) -> None:
    """Install the package `julia` and what it needs; raises JuliaUnusable saying what to do instead."""
    machine = machine or Machine.this()
    mirrors = machine.mirrors()
    if not consent:
        raise JuliaUnusable(
            "Debian's own Julia 1.5 could be installed system-wide with apt; say yes to that "
            f"with `pybridge setup --yes` (as root), or {_BY_HAND}"
        )
    if not machine.is_root:
        raise JuliaUnusable(
            f"installing Debian's Julia needs root: run `pybridge setup --yes` as root, or {_BY_HAND}"
        )
    faults = []
    for mirror in mirrors:
        try:
            _install_from(mirror, progress)
            return
        except JuliaUnusable as fault:
            faults.append(f"{mirror.uri}: {fault}")
    raise JuliaUnusable(f"apt could not install Debian's Julia ({'; '.join(faults)}); {_BY_HAND}")


def _install_from(mirror: apt_sources.Source, progress: Progress) -> None:
    with _private_apt(mirror) as apt:
        progress(f"reading the package lists of Debian's {SUITE}", None)
        apt("update", progress)
        progress("installing Debian's Julia", None)
        apt("install", progress, "--yes", "--no-install-recommends", "--no-remove", "julia")
        progress("fitting Julia's libunwind", None)
        _fit_libunwind(apt, progress)


def _fit_libunwind(apt: Callable[..., None], progress: Progress) -> None:
    """Give Julia the libunwind it was built with.

    Later releases changed the layout of the structure by which Julia announces compiled code, under the
    same soname: with Debian 12's, the first exception that leaves compiled code ends the process. Julia's
    library looks into a folder of its own first, so its own copy goes there and no other program sees it.
    """
    private = next(Path("/usr/lib").glob("*/julia/sys.so"), None)
    if private is None:
        raise JuliaUnusable("the package julia installed no system image")
    with tempfile.TemporaryDirectory(prefix="pybridge-") as folder:
        # -t gives this suite's version even where a newer one is installed
        apt("download", progress, "-t", SUITE, f"libunwind8/{SUITE}", where=folder)
        package = next(Path(folder).glob("libunwind8_*.deb"))
        subprocess.run(["dpkg-deb", "--extract", str(package), folder], check=True, capture_output=True)
        library = next(Path(folder).glob(f"usr/lib/*/{_LIBUNWIND}"))
        fresh = private.parent / f".{_LIBUNWIND}.new"
        shutil.copyfile(library.resolve(), fresh)
        fresh.chmod(0o644)
        fresh.replace(private.parent / _LIBUNWIND)  # at once: a running Julia keeps the file it has mapped


@contextmanager
def _private_apt(mirror: apt_sources.Source) -> Iterator[Callable[..., None]]:
    with tempfile.TemporaryDirectory(prefix="pybridge-apt-") as folder:
        os.chmod(folder, 0o755)  # apt reads as its own user
        lists = Path(folder, "lists")
        (lists / "partial").mkdir(parents=True)
        sources = Path(folder, "sources.list")
        sources.write_text(mirror.line() + "\n", encoding="utf-8")
        options = {
            "Dir::Etc::sourcelist": sources,
            "Dir::Etc::sourceparts": "/dev/null",
            "Dir::State::lists": lists,
            "APT::Status-Fd": 1,
            "Dpkg::Use-Pty": 0,
            "Acquire::Retries": 2,
            "Acquire::http::Timeout": 30,
            "DPkg::Lock::Timeout": 120,
        }
        prefix = [
            "apt-get",
            "-q",
            *(word for key, value in options.items() for word in ("-o", f"{key}={value}")),
        ]

        def apt(command: str, progress: Progress, *arguments: str, where: str | None = None) -> None:
            _run([*prefix, command, *arguments], progress, where)

        yield apt


def talking(command: list[str], **options: Any) -> subprocess.Popen[str]:
    """The command started, with all that it says on its standard output."""
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        **options,
    )


def _run(command: list[str], progress: Progress, where: str | None) -> None:
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
    said: list[str] = []
    with talking(command, cwd=where, env=environment) as process:
        for line in process.stdout or ():
            if step := parse_status(line):
                progress(*step)
            else:
                said.append(line.strip())
    if process.returncode:
        errors = [line for line in said if line.startswith(("E:", "Err:", "W: Failed"))] or said[-3:]
        raise JuliaUnusable(f"apt-get failed: {' '.join(errors)[-400:]}")


def parse_status(line: str) -> tuple[str, float | None] | None:
    """One line of apt's status channel, `kind:package:percent:text`, as progress."""
    found = re.match(r"(dlstatus|pmstatus):[^:]*(?::\w+)?:([\d.]+):(.*)", line)
    if found is None:
        return None
    doing = "downloading" if found[1] == "dlstatus" else "installing"
    return f"{doing}: {found[3].strip()}", float(found[2]) / 100


def _os_release(file: Path) -> dict[str, str]:
    try:
        text = file.read_text(encoding="utf-8")
    except OSError:
        return {}
    return {key: value.strip("\"'") for key, value in re.findall(r"^(\w+)=(.*)$", text, re.MULTILINE)}
