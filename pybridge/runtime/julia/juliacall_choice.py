"""What juliacall would use, or already uses, found out without starting, resolving or printing anything."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import forks, remembered
from .probe import Installation

_BROKEN_RELEASES = {"0.9.35"}


@dataclass(frozen=True)
class Choice:
    executable: Path
    project: Path


def running() -> Choice | None:
    """The Julia that juliacall has started in this process."""
    config: dict[str, Any] = getattr(sys.modules.get("juliacall"), "CONFIG", {})
    if not config.get("inited"):
        return None
    return Choice(Path(config["exepath"]), Path(config["project"]))


def version() -> str | None:
    """juliacall's version, read from its metadata, since importing it starts Julia."""
    try:
        return importlib.metadata.version("juliacall")
    except importlib.metadata.PackageNotFoundError:
        return None


def fits(julia: Installation) -> bool:
    """Whether juliacall can start this Julia: PythonCall is there, in the version juliacall insists on."""
    return (
        julia.pythoncall is not None and julia.pythoncall == version() and version() not in _BROKEN_RELEASES
    )


def choice() -> Choice | str:
    """juliacall's settings, or what juliapkg resolved earlier; else the reason why there is neither."""
    if importlib.util.find_spec("juliacall") is None:
        return "juliacall is not installed"
    executable, project = _option("exe"), _option("project")
    if executable and project:
        found = shutil.which(executable)
        return Choice(Path(found).absolute(), Path(project)) if found else f"{executable} is no executable"
    try:
        return _resolved()
    except Exception as problem:  # a broken juliapkg must not keep us from looking on PATH
        return f"juliapkg fails: {problem}"


def _resolved() -> Choice | str:
    none = "juliapkg has not installed a Julia for this environment"
    this, question = Path(sys.executable), _juliapkg_settings()
    if remembered.recall(this, question) is not None:
        return none
    # juliapkg's public functions resolve first, which prints to stdout and downloads; this one only looks
    from juliapkg.deps import STATE, can_skip_resolve

    meta = Path(STATE["meta"])
    if not meta.exists():
        # The import took longer than all else that finds a Julia.
        remembered.remember(this, question, {}, [meta, *_juliapkg_files()])
        return none
    with forks.held_off():  # it runs Julia
        known = can_skip_resolve()
    return Choice(Path(known["executable"]), Path(STATE["project"])) if known else none


def _juliapkg_settings() -> str:
    """What decides where juliapkg looks."""
    variables = {
        name: value
        for name, value in os.environ.items()
        if name.startswith("PYTHON_JULIAPKG_") or name in ("CONDA_PREFIX", "VIRTUAL_ENV")
    }
    options = {name: value for name, value in sys._xoptions.items() if name.startswith("juliapkg-")}
    files = list(map(str, _juliapkg_files()))
    return f"juliapkg {json.dumps([files, sys.prefix, sorted(variables.items()), sorted(options.items())])}"


def _juliapkg_files() -> list[Path]:
    """What changes with juliapkg's release. Its metadata take longer to read than all of the search."""
    spec = importlib.util.find_spec("juliapkg")
    return [] if spec is None or spec.origin is None else [Path(spec.origin)]


def _option(name: str) -> str | None:
    flag = sys._xoptions.get(f"juliacall-{name}")
    return flag if isinstance(flag, str) else os.environ.get(f"PYTHON_JULIACALL_{name.upper()}")
