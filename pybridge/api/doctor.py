"""`pb.doctor()`: what is available on this machine, why something is not, and the command that corrects it.

Everything that could end the process, such as starting a broken Julia, is tried in a process of its own.
"""

from __future__ import annotations

import importlib.metadata
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal

import jax

from .. import cache
from ..engines import ENGINES
from ..errors import JuliaNotFound, PyBridgeError
from ..frontend.adapter import faults, internals
from ..runtime import julia
from ..runtime.julia import image, source
from ..runtime.julia.discovery import SETTING, Discovery
from ..runtime.julia.installing import start_elsewhere
from ..runtime.linker import linker
from .rendering import notebook

if TYPE_CHECKING:
    from rich.table import Table

State = Literal["ok", "missing", "broken", "info"]

_OUTCOMES: dict[str, State] = {"chosen": "ok", "unusable": "broken"}
"""Of a step of the search for Julia; any other is information."""

_SETUP = "pybridge setup (with --yes, as root, to allow Debian's package)"
_MARKS: dict[State, str] = {"ok": "[green]ok[/]", "missing": "[yellow]missing[/]", "broken": "[red]broken[/]"}


@dataclass(frozen=True)
class Row:
    """One thing that was looked at. `remedy` is a command or an action, empty where nothing is wrong."""

    name: str
    state: State
    detail: str
    remedy: str = ""


@dataclass(frozen=True, repr=False)
class Report:
    """All rows. Prints as a table, by itself or through rich; `healthy` is what scripts ask."""

    rows: tuple[Row, ...]

    @property
    def healthy(self) -> bool:
        """Whether Julia works; optional engines may be missing."""
        return not any(row.state == "broken" for row in self.rows) and self["JaxprAD"].state == "ok"

    def __getitem__(self, name: str) -> Row:
        return next(row for row in self.rows if row.name == name)

    def json(self) -> str:
        return json.dumps({"healthy": self.healthy, "rows": [asdict(row) for row in self.rows]}, indent=2)

    def __repr__(self) -> str:
        counts = Counter(row.state for row in self.rows)
        found = ", ".join(f"{n} {state}" for state, n in counts.items())
        return f"<Report of pybridge.doctor: {'healthy' if self.healthy else 'not healthy'}; {found}>"

    def _repr_html_(self) -> str:
        return notebook(self)

    def __str__(self) -> str:
        width = max(len(row.name) for row in self.rows)
        lines = []
        for row in self.rows:
            lines.append(f"{row.name:{width}}  {row.state:7}  {row.detail}")
            if row.remedy:
                lines.append(f"{'':{width}}  {'':7}  -> {row.remedy}")
        return "\n".join(lines)

    def __rich__(self) -> Table:
        from rich.markup import escape
        from rich.table import Table

        table = Table("", "state", "what was found", "what to do", title="pybridge doctor")
        for row in self.rows:
            table.add_row(
                escape(row.name), _MARKS.get(row.state, row.state), escape(row.detail), escape(row.remedy)
            )
        return table


def doctor() -> Report:
    """Look at everything pybridge can use. Never raises and never starts Julia in this process."""
    rows: list[Row] = []
    for examine in (_search, _packages, _engines, _kept):
        rows += _safely(examine.__name__.strip("_"), examine)
    return Report(tuple(rows))


def _safely(name: str, examine: Callable[[], Iterator[Row]]) -> list[Row]:
    rows: list[Row] = []
    try:
        for row in examine():
            rows.append(row)
    except Exception as problem:  # a doctor that dies of the illness is of no use
        rows.append(
            Row(name, "broken", f"{type(problem).__name__}: {problem}", "please report this as a bug")
        )
    return rows


def _search() -> Iterator[Row]:
    found = julia.find()
    for step in found.steps:
        state = _OUTCOMES.get(step.outcome, "info")
        detail = step.reason if step.outcome in ("chosen", "unusable") else f"{step.outcome}: {step.reason}"
        yield Row(f"search: {step.place}", state, detail, _remedy(step) if step.outcome == "unusable" else "")
    yield from _julia(found)


def _remedy(step: julia.Step) -> str:
    return f"point {step.place} at a working Julia, or unset it" if step.place == SETTING else _SETUP


def _julia(found: Discovery) -> Iterator[Row]:
    chosen = found.julia
    if chosen is None:
        unusable = [step for step in found.steps if step.outcome == "unusable"]
        remedy = _remedy(unusable[0]) if unusable else _SETUP
        yield Row("Julia", "missing", "no Julia that works was found", remedy)
        for name in ("start", "JaxprAD", "PythonCall", "Enzyme.jl"):
            yield Row(name, "missing", "needs Julia, see there")
        return
    recent = chosen.release >= (1, 10)
    note = "" if recent else "; 1.10 or newer would bring Enzyme.jl and PythonCall"
    if chosen.untried:
        remedy = "set PYBRIDGE_JULIA to an older one if something fails"
        yield Row("Julia", "info", f"{chosen.untried}: {chosen.libjulia}", remedy)
    else:
        yield Row("Julia", "ok", f"{chosen.version}, {chosen.libjulia}{note}")
    how = {
        "embedded": "libjulia embedded directly",
        "juliacall": "through juliacall, so that Julia objects can be shared",
        "attached": "joining the Julia that juliacall has started",
    }
    yield Row("start", "ok", how[found.host])
    yield _loads()
    yield from _image(chosen)
    newer = "" if recent else "with Julia 1.10 or newer: "
    yield _in_julia("PythonCall", chosen.pythoncall, f"{newer}pybridge setup, or Pkg.add in Julia")
    yield _in_julia("Enzyme.jl", chosen.enzyme, f"{newer}pybridge setup --enzyme")


def _in_julia(name: str, version: str | None, remedy: str) -> Row:
    if version is None:
        return Row(name, "missing", "not in Julia's environment", remedy)
    return Row(name, "ok", version)


def _loads() -> Row:
    """Whether JaxprAD loads, tried in a fresh process unless this one has it already."""
    if julia.status().package is not None:
        return Row("JaxprAD", "ok", f"loaded from {julia.status().package}")
    package, problem = start_elsewhere()
    if problem:
        return Row("JaxprAD", "broken", problem, _SETUP)
    return Row("JaxprAD", "ok", f"loads from {package}")


def _image(chosen: julia.Installation) -> Iterator[Row]:
    """An old Julia keeps no compiled code of packages by itself."""
    try:
        package = source.jaxprad()
    except PyBridgeError:  # the row above says so
        return
    if not image.wanted(chosen, package):
        return
    compiled = image.with_image(chosen, package).image
    if compiled != chosen.image:
        yield Row("system image", "ok", f"JaxprAD is compiled into {compiled}")
    else:
        detail = "JaxprAD is not compiled in advance: a process's first derivatives take seconds"
        yield Row("system image", "missing", detail, "pybridge setup (needs a C compiler)")


def _engines() -> Iterator[Row]:
    for name, engine in ENGINES.items():
        problem = engine.unavailable()
        if problem is None:
            yield Row(f"engine {name}", "ok", f"executes by {' or '.join(engine.executes)}")
        elif isinstance(problem, JuliaNotFound):
            yield Row(f"engine {name}", "missing", "needs Julia, see there")
        else:
            yield Row(f"engine {name}", "missing", str(problem), "see the package's row")


def _packages() -> Iterator[Row]:
    yield _jax()
    yield _distribution("juliacall", "shares Julia objects with scripts", "pip install juliacall")
    remedy = "pip install enzyme-ad"
    if sys.version_info[:2] != (3, 11):
        remedy = "use Python 3.11, the only one it works on"
    yield _distribution("enzyme-ad", "engine enzyme-jax", remedy)


def _kept() -> Iterator[Row]:
    """What lets a second process do without Julia."""
    place, store = cache.folder(), cache.default()
    if store is not None:
        usage = store.usage()
        yield Row("cache", "ok", f"{store.place}, {usage.entries} entries, {usage.megabytes}")
    elif place is None:
        yield Row("cache", "info", f"turned off by {cache.SETTING}: each process compiles anew")
    else:
        reason, remedy = cache.Store(place).distrusted(), f"set {cache.SETTING} to another folder"
        yield Row("cache", "missing", f"{place} is not used: {reason}", remedy)
    command = linker()
    if command is None:
        yield Row(
            "kernel files",
            "missing",
            "no linker that is known to work, so each process compiles its kernels anew",
            "on Linux, install binutils, lld or a C compiler",
        )
    else:
        yield Row("kernel files", "ok", f"linked by {command}")


def _jax() -> Row:
    version = jax.__version__
    gone = internals.missing()
    if gone:
        return Row("jax", "broken", f"{version}, which lacks {'; '.join(gone)}", internals.remedy())
    fault = faults.fault()
    if fault is not None:
        return Row("jax", "broken", f"{version}: {fault}", faults.REMEDY)
    if jax.__version_info__[:2] > internals.NEWEST:
        detail = f"{version}, newer than pybridge was {internals.tried()}"
        return Row("jax", "info", detail, internals.remedy())
    return Row("jax", "ok", f"{version} ({internals.tried()})")


def _distribution(name: str, use: str, remedy: str) -> Row:
    try:
        return Row(name, "ok", f"{importlib.metadata.version(name)} ({use})")
    except importlib.metadata.PackageNotFoundError:
        return Row(name, "missing", f"not installed ({use})", remedy)
