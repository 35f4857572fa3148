"""Sparse derivatives and asdex: `python -m benchmarks.sparse [--asdex PYTHON] [--json FILE] [--docs]`.

All on one core. asdex needs a JAX and a Python of its own choice, so it runs by another interpreter that has
it; processes take turns, and of each time the least counts.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from .markdown import between, table
from .measure import machine

_ROOT = Path(__file__).resolve().parent.parent
_PAGE = "docs/sparse.md"
_TURNS = 3
_HEAD = (
    "derivative",
    "n",
    "entries",
    "constant",
    "products: asdex",
    "pybridge",
    "pattern and colours: asdex",
    "pybridge",
    "evaluation: asdex",
    "JAX",
    "pybridge",
    "times as fast as asdex",
)


def main(
    asdex: Annotated[Path | None, typer.Option(help="An interpreter that has asdex.")] = None,
    to: Annotated[Path | None, typer.Option("--json", help="Where to write all figures.")] = None,
    docs: Annotated[bool, typer.Option("--docs", help=f"Write the table into {_PAGE}.")] = False,
    worker: Annotated[bool, typer.Option("--worker", hidden=True)] = False,
) -> None:
    """Detection, colouring, first and later evaluations."""
    if worker:
        _work()
        return
    commands = {"pybridge": [sys.executable, "-m", "benchmarks.sparse", "--worker"]}
    if asdex is not None:
        commands["asdex"] = [str(asdex), str(_ROOT / "benchmarks" / "sparse_asdex.py")]
    found: dict[str, dict[str, Any]] = {name: {} for name in commands}
    for _ in range(_TURNS):
        for name, command in commands.items():
            for row in _rows(command):
                known = found[name].setdefault(row["problem"], row)
                known.update({key: min(known[key], row[key]) for key in _TIMES if key in row})
    _check(found)
    result = {"machine": machine(), **found}
    if to is not None:
        to.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    written = table(_HEAD, _cells(found))
    print(written)
    if docs:
        page = _ROOT / _PAGE
        page.write_text(between(page.read_text(encoding="utf-8"), "times", written), encoding="utf-8")


_TIMES = ("plan", "first", "time", "median", "jax")


def _rows(command: list[str]) -> list[dict[str, Any]]:
    core = min(os.sched_getaffinity(0))
    run = subprocess.run(
        command,
        cwd=_ROOT,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: os.sched_setaffinity(0, {core}),
    )
    if run.returncode:
        raise typer.Exit(f"{' '.join(command)} failed:\n{run.stderr}")  # type: ignore[arg-type]
    return [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]


def _work() -> None:
    import time

    import jax

    import pybridge as pb

    from .measure import start_julia
    from .sparse_problems import PROBLEMS, measured

    jax.config.update("jax_enable_x64", True)
    start_julia()
    for problem in PROBLEMS:
        x, make = problem.x, pb.sparse_hessian if problem.hessian else pb.sparse_jacobian
        derivative, by_jax = make(problem.f), make(problem.f, engine="jax", constant_part=False)
        start = time.perf_counter()
        plan = derivative.plan(x)
        seconds = time.perf_counter() - start
        row = measured(jax.jit(lambda x, of=derivative: of(x).data), x)
        row["jax"] = measured(jax.jit(lambda x, of=by_jax: of(x).data), x)["time"]
        facts = {
            "size": problem.size,
            "plan": seconds,
            "colours": plan.colours,
            "entries": plan.pattern.entries,
            "constant": plan.constant_entries,
            "sum": float(abs(derivative(x).data).sum()),
        }
        print(json.dumps({"problem": problem.name, **row, **facts}), flush=True)


def _check(found: dict[str, dict[str, Any]]) -> None:
    """Both have the same derivative, as far as the sum of magnitudes says."""
    for name, row in found.get("asdex", {}).items():
        own = found["pybridge"][name]["sum"]
        if abs(own - row["sum"]) > 1e-10 * abs(own):
            raise typer.Exit(f"{name}: pybridge {own}, asdex {row['sum']}")  # type: ignore[arg-type]


def _cells(found: dict[str, dict[str, Any]]) -> Iterator[list[str]]:
    for name, row in found["pybridge"].items():
        other = found.get("asdex", {}).get(name)
        cells = [name, f"{row['size']:,}", f"{row['entries']:,}", f"{row['constant']:,}"]
        cells += ["" if other is None else str(other["colours"]), str(row["colours"])]
        cells += ["" if other is None else f"{other['plan']:.2f} s", f"{row['plan']:.2f} s"]
        cells += ["" if other is None else _micro(other["time"]), _micro(row["jax"]), _micro(row["time"])]
        cells += ["" if other is None else f"{other['time'] / row['time']:.1f}"]
        yield cells


def _micro(seconds: float) -> str:
    return f"{1e6 * seconds:,.0f} µs"


if __name__ == "__main__":
    typer.run(main)
