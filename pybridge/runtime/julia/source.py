"""Where the sources of the Julia package JaxprAD are."""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

from ...errors import JuliaUnusable

_PYBRIDGE = Path(__file__).resolve().parents[2]
OVERRIDE = "PYBRIDGE_JAXPRAD"


@dataclass(frozen=True)
class Package:
    """A Julia package with a `serve` function, and the folder that holds its Project.toml."""

    name: str
    folder: Path

    @classmethod
    def at(cls, folder: Path) -> Package:
        name = _project_name(folder)
        if name is None:
            raise JuliaUnusable(f"{folder} holds no Julia package: its Project.toml is missing or nameless")
        return cls(name, folder.resolve())

    def digest(self, *folders: str) -> str:
        """What the files in these folders of the package hold, as a digest.

        Each process computes it before its first kernel: `Path.glob` alone would take as long as all of it.
        """
        digest = hashlib.sha256()
        for folder in folders:
            found = os.walk(self.folder / folder)
            for path in sorted(os.path.join(inner, name) for inner, _, names in found for name in names):
                with open(path, "rb", buffering=0) as file:
                    digest.update(file.read())
        return digest.hexdigest()


def jaxprad() -> Package:
    """JaxprAD: the folder named by PYBRIDGE_JAXPRAD, the wheel's copy, or the checkout's `julia` folder."""
    if chosen := os.environ.get(OVERRIDE):
        return Package.at(Path(chosen))
    for folder in (_PYBRIDGE / "_jaxprad", _PYBRIDGE.parent / "julia"):
        if _project_name(folder) == "JaxprAD":
            return Package.at(folder)
    raise JuliaUnusable(
        f"the Julia package JaxprAD, which should travel with pybridge, is not in {_PYBRIDGE / '_jaxprad'}; "
        "install pybridge again"
    )


def _project_name(folder: Path) -> str | None:
    try:
        text = (folder / "Project.toml").read_text(encoding="utf-8")
    except OSError:
        return None
    found = re.search(r'^name\s*=\s*"(\w+)"', text, re.MULTILINE)
    return found[1] if found else None
