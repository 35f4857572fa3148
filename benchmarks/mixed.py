"""Mixed precision compared with 64 bits: `python -m benchmarks.mixed [--json FILE] [--docs]`.

A Gaussian mixture and a Kalman filter, value and gradient, for some errors: how much is in 32 bits, the
error that was asked for and the one that there is, and the times under `jit`, by XLA and by native kernels.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np
import typer
from jax.scipy.linalg import solve_triangular
from rich.console import Console
from rich.table import Table

import pybridge as pb
from pybridge.comparison._timing import interleaved

from .measure import error as error_of
from .measure import machine, start_julia
from .rows.adbench import mixture

ERRORS = (1e-5, 1e-8)
EXECUTES = ("xla", "julia")

_ROOT = Path(__file__).resolve().parent.parent
_PAGE, _BEGIN, _END = "docs/mixed.md", "<!-- times -->", "<!-- end of times -->"
_COLUMNS = (
    "function",
    "error asked",
    "in 32 bits",
    "error",
    "64 bits, XLA",
    "mixed",
    "64 bits, native",
    "mixed",
)


def kalman(quick: bool) -> tuple[Callable, tuple]:
    """The log-likelihood of a path, observed with noise, under a linear model of its motion."""
    steps, size, seen = (20, 4, 2) if quick else (2000, 8, 4)
    random = np.random.default_rng(0)
    rotation = np.linalg.qr(random.standard_normal((size, size)))[0]

    def step(state, y, motion, observe, noises):
        mean, cov, total = state
        of_motion, of_sight = jnp.exp(noises)
        mean, cov = motion @ mean, motion @ cov @ motion.T + of_motion * jnp.eye(size)
        apart = y - observe @ mean
        root = jnp.linalg.cholesky(observe @ cov @ observe.T + of_sight * jnp.eye(seen))
        white = solve_triangular(root, apart, lower=True)
        gain = solve_triangular(root, observe @ cov, lower=True)
        logs = jnp.sum(jnp.log(jnp.sum(root * jnp.eye(seen), axis=1))) + 0.5 * seen * math.log(2 * math.pi)
        state = (mean + gain.T @ white, cov - gain.T @ gain, total - 0.5 * white @ white - logs)
        return state, None

    def likelihood(motion, observe, noises, ys):
        start = (jnp.zeros(size), jnp.eye(size), jnp.zeros(()))
        return jax.lax.scan(lambda s, y: step(s, y, motion, observe, noises), start, ys)[0][2]

    args = (
        0.98 * rotation,
        random.standard_normal((seen, size)) / math.sqrt(size),
        np.log([0.1, 0.5]),
        random.standard_normal((steps, seen)),
    )
    return likelihood, args


def _with_gradient(function: Callable, args: tuple, argnums: tuple[int, ...]) -> tuple[Callable, tuple]:
    return jax.value_and_grad(function, argnums), args


FUNCTIONS: dict[str, Callable[[bool], tuple[Callable, tuple]]] = {
    "Gaussian mixture": mixture,
    "- value and gradient": lambda quick: _with_gradient(*mixture(quick), (0, 1, 2, 3)),
    "Kalman filter": kalman,
    "- its value and gradient": lambda quick: _with_gradient(*kalman(quick), (0, 1, 2)),
}


@dataclass(frozen=True)
class Row:
    """wide, narrow: seconds by execute mode, of the function as it is and in mixed precision."""

    function: str
    asked: float
    narrow: int
    total: int
    error: float
    wide: dict[str, float]
    mixed: dict[str, float]


def measure(name: str, asked: float, quick: bool) -> Row:
    function, args = FUNCTIONS[name](quick)
    args = jax.device_put(args)
    made = pb.mixed(function, error=asked)(*args)
    wide, mixed = {}, {}
    right = jax.tree.map(np.asarray, jax.jit(function)(*args))
    worst = 0.0
    for execute in EXECUTES:
        runs = [jax.jit(pb.bridge(f, execute=execute)) for f in (function, made)]
        results = [jax.block_until_ready(run(*args)) for run in runs]
        worst = max(worst, error_of(results[1], right))
        wide[execute], mixed[execute] = interleaved(
            [lambda run=run: run(*args) for run in runs], 3 if quick else 21, 4.0
        )
    return Row(name, asked, made.report.narrow, made.report.total, worst, wide, mixed)


def table(rows: list[Row]) -> list[list[str]]:
    return [
        [
            r.function,
            f"{r.asked:.0e}",
            f"{r.narrow} of {r.total}",
            f"{r.error:.1e}",
            *(
                text
                for e in EXECUTES
                for text in (_time(r.wide[e]), f"{r.wide[e] / r.mixed[e]:.2f} times as fast")
            ),
        ]
        for r in rows
    ]


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms"


def main(
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes.")] = False,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the numbers to this file.")] = None,
    docs: Annotated[bool, typer.Option("--docs", help=f"Write the table in {_PAGE}.")] = False,
) -> None:
    """Compare mixed precision with 64 bits. Status 1 if an error is larger than was asked for."""
    rows = []
    with jax.enable_x64(True), Console(stderr=True).status("measuring") as status:
        start_julia()
        for name in FUNCTIONS:
            for asked in ERRORS:
                status.update(f"measuring {name}, {asked:.0e}")
                rows.append(measure(name, asked, quick))
                print(*table(rows[-1:])[0], sep="  ", file=sys.stderr, flush=True)
    grid = Table(*_COLUMNS)
    for row in table(rows):
        grid.add_row(*row)
    Console(width=150).print(grid)
    about: Any = machine()
    if json_file is not None:
        json_file.write_text(json.dumps({"machine": about, "rows": list(map(asdict, rows))}, indent=1) + "\n")
    if docs:
        _write(_ROOT / _PAGE, rows, about)
    raise typer.Exit(0 if all(r.error <= r.asked for r in rows) else 1)


def _write(page: Path, rows: list[Row], about: dict[str, str]) -> None:
    lines = ["| " + " | ".join(_COLUMNS) + " |", "|" + " --- |" * len(_COLUMNS)]
    lines += ["| " + " | ".join(row) + " |" for row in table(rows)]
    text = page.read_text()
    before, after = text.partition(_BEGIN)[0], text.partition(_END)[2]
    said = ", ".join(f"{key} {value}" for key, value in about.items())
    page.write_text("\n".join([before + _BEGIN, *lines, "", said + ".", _END]) + after)


if __name__ == "__main__":
    typer.run(main)
