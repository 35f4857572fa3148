"""What functions of a library for C cost, called from C: `python -m benchmarks.library [--quick]`.

Each is called in a loop of a C program that is compiled here, next to the same function under `jax.jit`, by
native kernels. Medians of rounds.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import jax
import numpy as np
import typer
from rich.console import Console
from rich.table import Table

import pybridge as pb

from .case import Case
from .measure import machine
from .rows.scalar import CASES as SCALAR
from .rows.scans import CASES as SCANS

_ROUNDS = 21
_SECONDS = 0.1  # of a round
_PROGRAM = """
#define _POSIX_C_SOURCE 200112L
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "measured.h"

static double now(void) {{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}}

int main(int count, char **words) {{
    long rounds = atol(words[1]), calls = atol(words[2]);
    {memory}
    for (long round = 0; round < rounds; round++) {{
        double start = now();
        for (long i = 0; i < calls; i++)
            if (measured_value({arguments}) != MEASURED_OK) return 1;
        printf("%.9g\\n", (now() - start) / calls);
    }}
    return count - 3;
}}
"""


def main(quick: Annotated[bool, typer.Option(help="Small problems, for a smoke test.")] = False) -> None:
    table = Table("function", "from C, s a call", "under jit, s a call")
    for case in [SCALAR[0], *(c for c in SCANS if c.name.startswith("scan"))]:
        in_c, under_jit = measured(case, quick)
        table.add_row(case.title, f"{in_c:.3g}", f"{under_jit:.3g}")
    console = Console()
    console.print(table)
    console.print(", ".join(f"{what} {value}" for what, value in machine().items()))


def measured(case: Case, quick: bool) -> tuple[float, float]:
    """The seconds of a call from C, and of one under jit."""
    assert case.make is not None
    with jax.enable_x64(case.x64), tempfile.TemporaryDirectory() as folder:
        problem = case.make(quick)
        args = jax.device_put(problem.args)
        f = problem.ours
        made = pb.compile_library(f, "measured", directory=folder)(*args)
        program = _program(made, jax.tree.leaves(args), jax.tree.leaves(jax.eval_shape(f, *args)))
        run = jax.jit(f)
        jax.block_until_ready(run(*args))
        once = _per_call(lambda: jax.block_until_ready(run(*args)), 1, 3)
        calls, rounds = (1, 3) if quick else (max(1, int(_SECONDS / once)), _ROUNDS)
        said = subprocess.run([program, str(rounds), str(calls)], check=True, capture_output=True, text=True)
        in_c = statistics.median(map(float, said.stdout.split()))
        return in_c, _per_call(lambda: jax.block_until_ready(run(*args)), calls, rounds)


def _per_call(call: Callable[[], object], calls: int, rounds: int) -> float:
    taken = []
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(calls):
            call()
        taken.append((time.perf_counter() - start) / calls)
    return statistics.median(taken)


def _program(made: pb.CLibrary, arguments: list, results: list) -> Path:
    """The C program, compiled, with the arguments written into it."""
    lines, names = [], []
    for i, x in enumerate([*map(np.asarray, arguments), *results]):
        c_type = {"float32": "float", "float64": "double"}[str(x.dtype)]
        content = ", ".join(repr(float(v)) for v in x.ravel()) if isinstance(x, np.ndarray) else "0"
        lines.append(f"static {c_type} x{i}[{max(1, int(np.prod(x.shape)))}] = {{{content}}};")
        names.append(f"x{i}")
    folder = made.library.parent
    source, program = folder / "program.c", folder / "program"
    source.write_text(_PROGRAM.format(memory="\n    ".join(lines), arguments=", ".join(names)))
    compiler = shutil.which("cc") or "gcc"
    links = ["-L", str(folder), "-lmeasured", f"-Wl,-rpath,{folder}"]
    subprocess.run([compiler, "-O2", "-I", str(folder), str(source), "-o", str(program), *links], check=True)
    return program


if __name__ == "__main__":
    typer.run(main)
