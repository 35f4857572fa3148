"""Whole runs by JAX and with a function bridged, `python -m zoo.runs [NAMES]`: docs/measurements/runs.md.

Each side runs in processes of its own, in turn, with the cache that `pybridge setup` leaves.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console

from benchmarks.markdown import table
from benchmarks.measure import machine

from ..environments import ENVIRONMENTS, ROOT
from .table import RUNS, Run

_PREPARE = "from pybridge.runtime import kernel_files; kernel_files.prepare()"
_HEAD = ("run", "from import to result, s", "JAX", "ratio", "again, s", "JAX", "ratio")
_PAGE = """# Whole runs

Programs of JAX as users have them, with `pb.bridge` around one function: the potential of a sampler, the
loss of a training loop, the solve in a fit. Wall-clock seconds, medians of {repeats} processes: the first run
from before `import jax`, with the [cache](../cache.md) that `pybridge setup` leaves and Julia's start
included, and the same once more in the process, which traces everything again. `python -m zoo.runs` measures
all of it and writes this page; the runs are in `zoo/runs/table.py`.

{machine}

{rows}
"""


def main(
    names: Annotated[list[str] | None, typer.Argument(help="Runs; all of them, if none.")] = None,
    python: Annotated[Path | None, typer.Option(help="An interpreter with everything installed.")] = None,
    repeats: Annotated[int, typer.Option(help="Processes of each side.")] = 3,
) -> None:
    console = Console(highlight=False)
    executable = python or ENVIRONMENTS[0].executable()
    chosen = [run for run in RUNS if not names or run.name in names]
    rows = []
    for run in chosen:
        row = _row(run, executable, repeats)
        console.print(*row)
        rows.append(row)
    if len(chosen) == len(RUNS):
        page = _PAGE.format(repeats=repeats, machine=_machine(), rows=table(_HEAD, rows))
        (ROOT / "docs" / "measurements" / "runs.md").write_text(page, encoding="utf-8")


def _machine() -> str:
    return ", ".join(f"{name}: {value}" for name, value in machine().items())


def _row(run: Run, python: Path, repeats: int) -> tuple[str, ...]:
    results: dict[str, list[dict[str, Any]]] = {"ours": [], "jax": []}
    for _ in range(repeats):
        with tempfile.TemporaryDirectory(prefix="pybridge-runs-") as cache:
            variables = {"PYBRIDGE_CACHE": cache, "PYBRIDGE_PROGRESS": "off"}
            _ran([str(python), "-c", _PREPARE], variables)
            for side, found in results.items():
                command = [str(python), "-m", "zoo.runs.worker", run.name, side]
                found.append(json.loads(_ran(command, variables).splitlines()[-1]))
    ours, theirs = (np.array(results[side][0]["numbers"]) for side in ("ours", "jax"))
    wrong = float(np.max(np.abs(ours - theirs)) / np.max(np.abs(theirs)))
    if not wrong <= run.tolerance:
        raise typer.BadParameter(f"{run.name}: the results differ by {wrong:.2g}")
    cells = [run.title]
    for part in ("first", "again"):
        mine, jax = (statistics.median(r[part][0] for r in results[side]) for side in ("ours", "jax"))
        cells += [f"{mine:.2f}", f"{jax:.2f}", f"{jax / mine:.2f}"]
    return tuple(cells)


def _ran(command: list[str], variables: Mapping[str, str]) -> str:
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command[1:])} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return done.stdout


if __name__ == "__main__":
    typer.run(main)
