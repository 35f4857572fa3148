"""What `write` leaves for run.py: StableHLO of each side of an entry, arrays, and a list of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np


@dataclass(frozen=True)
class Entry:
    """One computation, in files.

    sides: what is run: pybridge's export and, to be timed with it, JAX's.
    args: a tree of arrays. expected: the leaves of the result.
    tolerance: the largest error that is agreement, relative to the largest number of a leaf, or to `least`.
    unique: whether what is expected is JAX's result, not one of several that are right, the export's own.
    """

    name: str
    kind: str
    sides: dict[str, jax.export.Exported]
    args: tuple
    expected: list[np.ndarray]
    tolerance: float
    least: float
    unique: bool = True

    def __str__(self) -> str:
        return "exported" if self.unique else "exported, to be compared with its own result on this CPU"


@dataclass(frozen=True)
class Refused:
    """What does not export, and why."""

    name: str
    kind: str
    reason: str

    def __str__(self) -> str:
        return self.reason


def write(folder: Path, entries: Iterable[Entry | Refused]) -> Iterator[Entry | Refused]:
    """Each entry once it is written; the list of them at the end."""
    folder.mkdir(parents=True)
    listed, refused = [], []
    for number, entry in enumerate(entries):
        if isinstance(entry, Refused):
            refused.append(vars(entry))
        else:
            listed.append(_written(folder, f"{number:04}", entry))
        yield entry
    text = json.dumps({"jax": jax.__version__, "entries": listed, "refused": refused}, indent=1)
    (folder / "entries.json").write_text(text, encoding="utf-8")


def _written(folder: Path, stem: str, entry: Entry) -> dict[str, Any]:
    files = {side: f"{stem}-{side}.bin" for side in entry.sides}
    for side, exported in entry.sides.items():
        (folder / files[side]).write_bytes(exported.serialize())
    arrays = {f"argument {k}": np.asarray(x) for k, x in enumerate(jax.tree.leaves(entry.args))}
    arrays |= {f"result {k}": y for k, y in enumerate(entry.expected)}
    np.savez_compressed(folder / f"{stem}.npz", **arrays)
    return {
        "name": entry.name,
        "kind": entry.kind,
        "tolerance": entry.tolerance,
        "least": entry.least,
        "files": files,
        "arrays": f"{stem}.npz",
        "arguments": len(jax.tree.leaves(entry.args)),
    }
