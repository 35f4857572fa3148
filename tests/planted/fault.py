"""A planted fault, as its file describes it."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]
_PART = re.compile(r"^run: (julia|python) (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Fault:
    """file: the patch. title: what is wrong. language, words: the part of `make test` that must find it,
    files of `julia/test` without their ending, or arguments of pytest. changed: the files that it changes.
    """

    file: Path
    title: str
    language: str
    words: tuple[str, ...]
    changed: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.file.stem

    @property
    def missing(self) -> list[str]:
        """Files that its part names and that do not exist."""
        if self.language == "julia":
            paths = [f"julia/test/{word}.jl" for word in self.words]
        else:
            paths = [word.partition("::")[0] for word in self.words if word.startswith("tests/")]
        return [path for path in paths if not (ROOT / path).exists()] or ([] if paths else ["no file"])

    def apply(self, folder: Path, *, check: bool = False) -> str:
        """Changes the sources in the folder, or with `check` only tries to; why it does not fit, if so."""
        words = ["git", "apply", *(["--check"] if check else []), str(self.file)]
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
        return done.stderr.strip() if done.returncode else ""


def read(file: Path) -> Fault:
    """Raises ValueError for a patch without a title or a part."""
    text = file.read_text(encoding="utf-8")
    head = text.partition("\ndiff --git ")[0]
    part = _PART.search(head)
    title = " ".join(_PART.sub("", head).split())
    if part is None or not title:
        raise ValueError(f"{file.name} begins with no title, or has no line `run: julia|python ...`")
    changed = re.findall(r"^diff --git a/\S+ b/(\S+)$", text, re.MULTILINE)
    return Fault(file, title, part[1], tuple(part[2].split()), tuple(changed))


def faults() -> list[Fault]:
    return [read(file) for file in sorted(FOLDER.glob("*.patch"))]
