"""What Julia's package manager installs from the network: a Julia by way of juliapkg, and Enzyme.jl."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator

from ...errors import JuliaUnusable
from . import juliacall_choice
from .debian import Progress, talking
from .probe import ENZYME_OLDEST, Installation

ENZYME_UUID = "7da242da-08ed-463a-9acd-ee780be4f1d9"
ENZYME_VERSION = "0.13"  # as in julia/Project.toml

_NETWORK_PATIENCE = 5.0  # seconds to see whether Julia's servers answer at all
_SILENCE = 600.0  # seconds without a word after which an installation is given up


def install_julia(report: Progress) -> None:
    """Let juliapkg install Julia and the packages of juliapkg.json. Raises JuliaUnusable."""
    if importlib.util.find_spec("juliapkg") is None:
        raise JuliaUnusable("juliapkg is not installed; `pip install juliapkg`")
    report("asking whether Julia's servers can be reached", None)
    _require_network()
    report("juliapkg installs Julia and its packages", None)
    _run([sys.executable, "-u", "-c", "import juliapkg; juliapkg.resolve()"], "juliapkg", report)


def install_enzyme(julia: Installation, report: Progress) -> None:
    """Put Enzyme.jl into the environment that this Julia is started with, unless it is there.

    Where juliapkg has made that environment, juliapkg is asked, since it removes what it was not asked for.
    Raises JuliaUnusable where the Julia is too old, or the installation fails.
    """
    if julia.enzyme is not None:
        return
    if julia.release < ENZYME_OLDEST:
        raise JuliaUnusable(
            f"Enzyme.jl needs Julia 1.10 or newer, and {julia.executable} is {julia.version}: set "
            "PYBRIDGE_JULIA to a newer one"
        )
    report("installing Enzyme.jl, which Julia compiles: minutes", None)
    choice = juliacall_choice.choice()
    if not isinstance(choice, str) and choice.project == julia.project:
        code = f"import juliapkg; juliapkg.add('Enzyme', {ENZYME_UUID!r}, version={ENZYME_VERSION!r})"
        _run([sys.executable, "-u", "-c", f"{code}; juliapkg.resolve()"], "juliapkg", report)
        return
    # By the UUID: a registry may have another package of that name.
    code = f'import Pkg; Pkg.add(name="Enzyme", uuid="{ENZYME_UUID}", version="{ENZYME_VERSION}")'
    _run([str(julia.executable), "--startup-file=no", "-e", code], "Pkg", report)


def _run(command: list[str], name: str, report: Progress) -> None:
    with talking(command) as process:
        said: list[str] = []
        for line in _until_silent(process):
            said.append(line.replace(f"[{name}]", "").strip())
            report(f"{name}: {said[-1][:100]}", None)
    if process.returncode:
        raise JuliaUnusable(f"{name} failed: {_errors(said)}")


def _errors(said: list[str]) -> str:
    """What a process said last, without the stack trace of an error in Julia."""
    start = next((k for k, line in enumerate(said) if line.startswith("ERROR: ")), len(said) - 3)
    words = said[max(start, 0) :]
    trace = next((k for k, line in enumerate(words) if line == "Stacktrace:"), len(words))
    return " ".join(words[:trace])[-400:]


def _require_network() -> None:
    from juliapkg import install_julia

    address = getattr(install_julia, "_julia_versions_url", None)
    if address is None:  # a juliapkg that keeps it elsewhere: let it find out by itself
        return
    try:
        urllib.request.urlopen(address, timeout=_NETWORK_PATIENCE).close()
    except OSError as reason:
        raise JuliaUnusable(f"the network does not reach Julia's servers ({reason})") from reason


def _until_silent(process: subprocess.Popen[str]) -> Iterator[str]:
    """The process's lines; it is killed when none has come for a long time."""
    assert process.stdout is not None
    while True:
        timer = threading.Timer(_SILENCE, process.kill)
        timer.start()
        try:
            line = process.stdout.readline()
        finally:
            timer.cancel()
        if not line:
            return
        yield line
