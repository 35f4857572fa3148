"""Asking a Julia executable what it is, in a process of its own, where nothing can go wrong for us."""

from __future__ import annotations

import functools
import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ...errors import JuliaUnusable
from . import forks
from .remembered import recall, remember

OLDEST = (1, 5)
NEWEST = (1, 12)
"""The newest Julia that ran pybridge's tests; with newer ones it warns."""
ENZYME_OLDEST = (1, 10)
"""The oldest Julia that Enzyme.jl takes."""
TIMEOUT = 60.0
REMEDY = (
    "install Julia 1.10 or newer and put it on PATH or set PYBRIDGE_JULIA to its executable, "
    "or let `pybridge setup` install one"
)

# One line for each fact. Exceptions are tried because Debian 11's Julia with Debian 12's libunwind dies
# of the first one that leaves compiled code. Debian has no libjulia.so, which Libdl.dlpath would want,
# so the list of what is loaded is read instead.
_QUESTIONS = r"""
using Libdl
is_libjulia(path) = occursin(r"^libjulia(-debug)?[0-9.]*\.(so|dylib)[0-9.]*$", basename(path))
say(key, value) = println("pybridge:", key, "=", value)
say("version", VERSION)
say("bindir", Sys.BINDIR)
say("libjulia", realpath(first(filter(is_libjulia, Libdl.dllist()))))
say("image", abspath(unsafe_string(Base.JLOptions().image_file)))
say("depot", isempty(DEPOT_PATH) ? "" : first(DEPOT_PATH))
say("project", dirname(something(Base.active_project(), "")))
thrower(x) = x ? throw(ArgumentError("")) : 0
try thrower(true) catch; end
say("exceptions", "work")
for name in ("PythonCall", "Enzyme")
    path = Base.find_package(name)
    path === nothing && continue
    file = joinpath(dirname(dirname(path)), "Project.toml")
    found = isfile(file) ? match(r"^version *= *\"(.*)\""m, read(file, String)) : nothing
    say(lowercase(name), found === nothing ? "unknown" : found[1])
end
"""


_PATHS = ("libjulia", "bindir", "image", "depot", "project")
_PACKAGES = ("pythoncall", "enzyme")


@dataclass(frozen=True)
class Installation:
    """A Julia that ran when asked, and what it said."""

    executable: Path
    version: str
    libjulia: Path
    bindir: Path
    image: Path
    depot: Path
    project: Path
    pythoncall: str | None = None  # versions of packages that its active environment can load
    enzyme: str | None = None

    @classmethod
    def of(cls, executable: Path, facts: Mapping[str, str | None]) -> Installation:
        """Of what it said; KeyError where that lacks something."""
        libjulia, bindir, image, depot, project = (Path(facts[name] or "") for name in _PATHS)
        packages = (facts.get(name) for name in _PACKAGES)
        return cls(executable, facts["version"] or "", libjulia, bindir, image, depot, project, *packages)

    @property
    def release(self) -> tuple[int, int]:
        return _release(self.version)

    @property
    def untried(self) -> str | None:
        """That it is newer than any that ran the tests, if so."""
        newest = ".".join(map(str, NEWEST))
        tried = self.release <= NEWEST
        return None if tried else f"Julia {self.version}, newer than {newest}, with which pybridge was tested"

    def facts(self) -> dict[str, str | None]:
        """What it said."""
        paths = {name: str(getattr(self, name)) for name in _PATHS}
        packages = {name: getattr(self, name) for name in _PACKAGES}
        return {"version": self.version, **paths, **packages}

    def depends_on(self) -> list[Path]:
        """The files by which that changes: itself, and the environments that say what can be loaded."""
        shared = self.depot / "environments" / "v{}.{}".format(*self.release)
        environments = [
            folder / name for folder in (self.project, shared) for name in ("Project.toml", "Manifest.toml")
        ]
        return [self.libjulia, self.image, *environments]


def probe(executable: Path, project: Path | None = None, timeout: float = TIMEOUT) -> Installation:
    """What the executable is; JuliaUnusable, naming path, version and remedy, when it is no good."""
    try:
        written = executable.stat().st_mtime_ns
    except OSError as reason:
        raise JuliaUnusable(f"{executable}: {reason.strerror}; {REMEDY}") from reason
    return _probe(executable, project, timeout, written)


@functools.lru_cache(maxsize=32)
def _probe(executable: Path, project: Path | None, timeout: float, written: int) -> Installation:
    question = f"{project or ''}\n{_QUESTIONS}"
    known = recall(executable, question)
    if known is not None:
        return Installation.of(executable, known)
    found = _asked(executable, project, timeout)
    remember(executable, question, found.facts(), found.depends_on())
    return found


def _asked(executable: Path, project: Path | None, timeout: float) -> Installation:
    version = _version(executable, timeout)
    if _release(version) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise JuliaUnusable(f"{executable} is Julia {version}; pybridge needs {oldest} or newer: {REMEDY}")
    extra = [f"--project={project}"] if project else []
    said = _run([str(executable), *extra, "--startup-file=no", "-e", _QUESTIONS], timeout, version)
    facts = dict(re.findall(r"^pybridge:(\w+)=(.*)$", said, re.MULTILINE))
    try:
        return Installation.of(executable, facts)
    except KeyError as missing:
        raise JuliaUnusable(f"{executable} is Julia {version} but tells no {missing}; {REMEDY}") from None


def _version(executable: Path, timeout: float) -> str:
    said = _run([str(executable), "--version"], timeout, "unknown")
    if found := re.search(r"^julia version (\d+\.\d+\S*)", said, re.MULTILINE):
        return found[1]
    answer = said.strip()[:80]
    raise JuliaUnusable(f"{executable} (version unknown) answers {answer!r}, not as Julia does; {REMEDY}")


def _run(command: list[str], timeout: float, version: str) -> str:
    who = f"{command[0]} (version {version})"
    # LD_PRELOAD and the like are the user's; only what would make Julia talk or wait is taken away
    environment = {k: v for k, v in os.environ.items() if k not in ("JULIA_DEBUG", "JULIA_ERROR_COLOR")}
    try:
        with forks.held_off():
            asked = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment,
            )
    except OSError as reason:
        raise JuliaUnusable(f"{who} cannot be run: {reason}; {REMEDY}") from reason
    with asked:
        try:
            answer, words = asked.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            raise JuliaUnusable(f"{who} did not answer within {timeout:g} s; {REMEDY}") from None
        finally:
            asked.kill()  # nothing, if it has ended
    if asked.returncode:
        said = words.decode("utf-8", "replace").strip() or "it said nothing"
        how = f"signal {-asked.returncode}" if asked.returncode < 0 else f"exit status {asked.returncode}"
        raise JuliaUnusable(f"{who} fails with {how} ({said[-300:]}); {REMEDY}")
    return answer.decode("utf-8", "replace")


def _release(version: str) -> tuple[int, int]:
    major, minor = re.findall(r"\d+", version)[:2]
    return int(major), int(minor)
