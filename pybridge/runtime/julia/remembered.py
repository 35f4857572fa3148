"""What a Julia said of itself, kept between processes, so that finding one runs nothing.

It holds as long as the files that it depends on have their times and sizes, and settings their values.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from ... import cache

Fingerprint = list[int] | None  # of a file: its size, and when it was written in ns


def recall(executable: Path, question: str) -> dict[str, str | None] | None:
    """What the executable answered when it was asked this before; None where that may have changed."""
    store = cache.default()
    known = store.read(_key(executable, question)) if store is not None else None
    if known is None:
        return None
    kept = json.loads(known)
    watched: dict[str, Fingerprint] = kept["watched"]
    unchanged = all(_fingerprint(Path(path)) == before for path, before in watched.items())
    return kept["facts"] if unchanged else None


def remember(
    executable: Path, question: str, facts: Mapping[str, str | None], watched: Sequence[Path]
) -> None:
    """Keep the answer for as long as the watched files, of which some may be missing, stay as they are."""
    store = cache.default()
    if store is not None:
        prints = {str(path): _fingerprint(path) for path in watched}
        store.write(_key(executable, question), json.dumps({"facts": facts, "watched": prints}).encode())


def _key(executable: Path, question: str) -> str:
    settings = {k: v for k, v in os.environ.items() if k.startswith(("JULIA_", "LD_")) or k == "HOME"}
    return (
        f"julia {json.dumps([str(executable), _fingerprint(executable), question, sorted(settings.items())])}"
    )


def _fingerprint(path: Path) -> Fingerprint:
    try:
        status = path.stat()
    except OSError:
        return None
    return [status.st_size, status.st_mtime_ns]
