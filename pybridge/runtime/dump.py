"""`PYBRIDGE_DUMP=folder` keeps every Program that is sent to Julia and every answer, for debugging."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Sequence
from pathlib import Path

SETTING = "PYBRIDGE_DUMP"
_COUNT = itertools.count(1)


def dump(command: str, arguments: Sequence[str], text: str, answer: str) -> None:
    """Writes `PID-0001-vjp-f.in.txt` (a comment, then the Program) and `….out.txt`, if asked to."""
    folder = os.environ.get(SETTING)
    if not folder:
        return
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    found = re.search(r"^program (\w+)\(", text, re.MULTILINE | re.ASCII)
    name = found[1][:40] if found else "program"
    stem = f"{os.getpid()}-{next(_COUNT):04d}-{command}-{name}"
    head = f"# {' '.join([command, *arguments])}\n"
    (path / f"{stem}.in.txt").write_text(f"{head}{text}", encoding="utf-8")
    (path / f"{stem}.out.txt").write_text(answer, encoding="utf-8")
