"""Runs what `python -m accelerators write` exported on the device that JAX has. Needs JAX and NumPy alone.

Usage: python run.py FOLDER RESULTS.json
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jax
import numpy as np
from agreement import error

_SECONDS, _CALLS = 0.5, 200  # a side is called until either is spent


def main(folder: Path, results: Path) -> int:
    """Status 1 if anything fails or differs."""
    jax.config.update("jax_enable_x64", True)
    listed = json.loads((folder / "entries.json").read_text(encoding="utf-8"))
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        compiled = list(threads.map(lambda entry: _tried(_compiled, folder, entry), listed["entries"]))
    found = [_tried(_ran, folder, *pair) for pair in zip(listed["entries"], compiled, strict=True)]
    for entry in found:
        if not entry["agrees"]:
            print(entry["name"], entry.get("failure") or entry["errors"], sep=": ", flush=True)
    about = {"machine": _machine(), "exported_by_jax": listed["jax"], "refused": listed["refused"]}
    results.write_text(json.dumps(about | {"entries": found}, indent=1) + "\n", encoding="utf-8")
    agree = sum(entry["agrees"] for entry in found)
    print(f"{agree} of {len(found)} agree on {jax.devices()[0].device_kind}")
    return int(agree < len(found))


def _machine() -> dict[str, str]:
    device = jax.devices()[0]
    return {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "device": device.device_kind,
        "platform": device.platform,
        "jax": jax.__version__,
        "python": platform.python_version(),
    }


def _tried(f: Callable, folder: Path, entry: dict[str, Any], *more: Any) -> dict[str, Any]:
    """What is raised fails one entry, not the run; what failed before goes on as it is."""
    if more and "failure" in more[0]:
        return more[0]
    try:
        return f(folder, entry, *more)
    except Exception as failure:
        reason = f"{type(failure).__name__}: {str(failure)[:1000]}"
        return {"name": entry["name"], "kind": entry["kind"], "agrees": False, "failure": reason}


def _compiled(folder: Path, entry: dict[str, Any]) -> dict[str, Callable]:
    """For each side a call of what is on the device already."""
    sides = {}
    with np.load(folder / entry["arrays"]) as arrays:
        leaves = [arrays[f"argument {k}"] for k in range(entry["arguments"])]
    for side, file in entry["files"].items():
        exported = jax.export.deserialize(bytearray((folder / file).read_bytes()))
        args, options = jax.tree.unflatten(exported.in_tree, jax.device_put(leaves))
        call = jax.jit(exported.call).lower(*args, **options).compile()
        sides[side] = lambda call=call, args=args, options=options: jax.block_until_ready(
            call(*args, **options)
        )
    return sides


def _ran(folder: Path, entry: dict[str, Any], sides: dict[str, Callable]) -> dict[str, Any]:
    with np.load(folder / entry["arrays"]) as arrays:
        right = [arrays[f"result {k}"] for k in range(len(arrays.files) - entry["arguments"])]
    errors = {side: error(jax.tree.leaves(call()), right, entry["least"]) for side, call in sides.items()}
    # What JAX's own derivative loses there, as by products of short numbers, is no error of ours.
    allowed = max(
        entry["tolerance"], *(2 * error for side, error in errors.items() if side != "pybridge"), 0.0
    )
    result = {"name": entry["name"], "kind": entry["kind"], "errors": errors}
    result |= {"agrees": errors["pybridge"] <= allowed}
    return result | ({"seconds": _medians(sides)} if len(sides) > 1 else {})


def _medians(sides: dict[str, Callable]) -> dict[str, float]:
    """Of calls in turns, so that what the machine does beside it meets both."""
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
