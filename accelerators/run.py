"""Runs what `python -m accelerators write` exported on the device that JAX has. Needs JAX and NumPy alone.

Usage: python run.py FOLDER RESULTS.json
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jax
import numpy as np

CASE, ROW = "case", "row"  # kinds of entries
OURS, THEIRS = "pybridge", "JAX"
AGREES, LIKE_JAX, DIFFERS, FAILS = "agrees", "like JAX", "differs", "fails"
"""Like JAX: JAX's own export differs or fails there, too, as products of short numbers do, and scatters whose
indices repeat."""
_SECONDS, _CALLS = 0.5, 200  # a side is called until either is spent


def main(folder: Path, results: Path) -> int:
    """Status 1 if anything of pybridge's fails or differs that does not so with JAX's own export."""
    jax.config.update("jax_enable_x64", True)
    listed = json.loads((folder / "entries.json").read_text(encoding="utf-8"))
    entries = [Computation(folder, **entry) for entry in listed["entries"]]
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        compiled = list(threads.map(Computation.compiled, entries))
    found = [entry.ran(sides) for entry, sides in zip(entries, compiled, strict=True)]
    for entry in found:
        if entry["verdict"] != AGREES:
            print(entry["name"], entry["verdict"], entry["errors"], entry["failures"], flush=True)
    about = {"machine": _machine(), "exported_by_jax": listed["jax"], "refused": listed["refused"]}
    results.write_text(json.dumps(about | {"entries": found}, indent=1) + "\n", encoding="utf-8")
    verdicts = Counter(entry["verdict"] for entry in found)
    print(f"{dict(verdicts)} on {jax.devices()[0].device_kind}")
    return int(verdicts[FAILS] + verdicts[DIFFERS] > 0)


def _machine() -> dict[str, str]:
    device = jax.devices()[0]
    return {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "device": device.device_kind,
        "platform": device.platform,
        "jax": jax.__version__,
        "python": platform.python_version(),
    }


@dataclass(frozen=True)
class Computation:
    """An entry that folder.py wrote."""

    folder: Path
    name: str
    kind: str
    tolerance: float
    least: float
    files: dict[str, str]
    arrays: str
    arguments: int

    def compiled(self) -> dict[str, Callable | str]:
        """For each side a call, its arguments on the device already; why not, if it does not compile."""
        with np.load(self.folder / self.arrays) as arrays:
            leaves = jax.device_put([arrays[f"argument {k}"] for k in range(self.arguments)])
        return {side: _tried(_call, self.folder / file, leaves) for side, file in self.files.items()}

    def ran(self, sides: dict[str, Callable | str]) -> dict[str, Any]:
        """The errors of each side, its failure, and the times of rows."""
        with np.load(self.folder / self.arrays) as arrays:
            right = [arrays[f"result {k}"] for k in range(len(arrays.files) - self.arguments)]
        found = {side: call if isinstance(call, str) else _tried(call) for side, call in sides.items()}
        failures = {side: text for side, text in found.items() if isinstance(text, str)}
        errors = {
            side: error(jax.tree.leaves(result), right, self.least)
            for side, result in found.items()
            if side not in failures
        }
        result = {"name": self.name, "kind": self.kind, "errors": errors, "failures": failures}
        result |= {"verdict": self._verdict(errors, failures)}
        return result | ({"seconds": _medians(sides)} if self.kind == ROW and not failures else {})

    def _verdict(self, errors: dict[str, float], failures: dict[str, str]) -> str:
        if OURS in failures:
            return LIKE_JAX if THEIRS in failures else FAILS
        if errors[OURS] <= self.tolerance:
            return AGREES
        return LIKE_JAX if errors[OURS] <= 2 * errors.get(THEIRS, 0.0) else DIFFERS


def _call(file: Path, leaves: list[jax.Array]) -> Callable:
    exported = jax.export.deserialize(bytearray(file.read_bytes()))
    args, options = jax.tree.unflatten(exported.in_tree, leaves)
    compiled = jax.jit(exported.call).lower(*args, **options).compile()
    return lambda: jax.block_until_ready(compiled(*args, **options))


def _tried(f: Callable, *args: Any) -> Any:
    """The result; what is raised, as text, fails one side of one entry, not the run."""
    try:
        return f(*args)
    except Exception as failure:
        return f"{type(failure).__name__}: {str(failure)[:1000]}"


def error(found: list[Any], right: list[np.ndarray], least: float) -> float:
    """The worst leaf's, relative to its largest number, or to `least` where all are smaller.

    Infinite where shapes differ, or which elements are finite.
    """
    if len(found) != len(right):
        return float("inf")
    return max((_leaf_error(np.asarray(x), y, least) for x, y in zip(found, right, strict=True)), default=0.0)


def _leaf_error(x: np.ndarray, y: np.ndarray, least: float) -> float:
    wide = np.complex128 if y.dtype.kind == "c" else np.float64
    x, y = x.astype(wide), y.astype(wide)
    finite = np.isfinite(y)
    if x.shape != y.shape or not np.array_equal(np.isfinite(x), finite):
        return float("inf")
    x, y = x[finite], y[finite]
    worst, largest = (np.max(np.abs(z), initial=0.0) for z in (x - y, y))
    return float(worst / max(largest, least))


def _medians(sides: dict[str, Callable]) -> dict[str, float]:
    """Of calls in turns, so that what else the machine does affects both."""
    samples: dict[str, list[float]] = {side: [] for side in sides}
    end = time.perf_counter() + _SECONDS * len(sides)
    for _ in range(_CALLS):
        for side, call in sides.items():
            start = time.perf_counter()
            call()
            samples[side].append(time.perf_counter() - start)
        if time.perf_counter() > end:
            break
    return {side: float(np.median(taken)) for side, taken in samples.items()}


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
