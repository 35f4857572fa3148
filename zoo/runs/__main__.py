"""Whole runs by JAX and with a function bridged, `python -m zoo.runs [NAMES]`: docs/measurements/runs.md.

Each side runs in processes of its own, in turn, with the cache that `pybridge setup` leaves.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console

from benchmarks.markdown import facts, table
from benchmarks.measure import machine
from benchmarks.processes import PREPARE, ask
from benchmarks.processes import run as run_python

from ..environments import ENVIRONMENTS, ROOT
from .table import RUNS, Run

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
        page = _PAGE.format(repeats=repeats, machine=facts(machine()), rows=table(_HEAD, rows))
        (ROOT / "docs" / "measurements" / "runs.md").write_text(page, encoding="utf-8")


def _row(run: Run, python: Path, repeats: int) -> tuple[str, ...]:
    results: dict[str, list[dict[str, Any]]] = {"ours": [], "jax": []}
    for _ in range(repeats):
        with tempfile.TemporaryDirectory(prefix="pybridge-runs-") as cache:
            variables = {"PYBRIDGE_CACHE": cache, "PYBRIDGE_PROGRESS": "off"}
            run_python(*PREPARE, variables=variables, python=str(python))
            for side, found in results.items():
                worker = ("-m", "zoo.runs.worker", run.name, side)
                found.append(ask(*worker, variables=variables, python=str(python)))
    ours, theirs = (np.array(results[side][0]["numbers"]) for side in ("ours", "jax"))
    wrong = float(np.max(np.abs(ours - theirs)) / np.max(np.abs(theirs)))
    if not wrong <= run.tolerance:
        raise typer.BadParameter(f"{run.name}: the results differ by {wrong:.2g}")
    cells = [run.title]
    for part in ("first", "again"):
        mine, jax = (statistics.median(r[part][0] for r in results[side]) for side in ("ours", "jax"))
        cells += [f"{mine:.2f}", f"{jax:.2f}", f"{jax / mine:.2f}"]
    return tuple(cells)


if __name__ == "__main__":
    typer.run(main)
