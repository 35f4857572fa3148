"""What `make demo` runs: pybridge on real input, every claim checked. Exit status 1 if a check fails.

Files are left in demo-output/: exported functions, tables as JSON and HTML, pictures.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import discussion
import jax
import logistic_regression
import numpy as np
import seed
from rich.console import Console
from rich.table import Table

import pybridge as pb
from pybridge.comparison import count_equations

HERE = Path(__file__).parent
OUTPUT = HERE.parent / "demo-output"
CLOSE = 1e-5  # relative to the largest element; both sides round in float32


@dataclass
class Demo:
    """Prints, and remembers which checks failed."""

    console: Console
    failed: list[str] = field(default_factory=list)

    def title(self, text: str) -> None:
        self.console.print()
        self.console.rule(f"[bold]{text}", align="left")

    def check(self, claim: str, holds: bool) -> None:
        self.console.print(f"[green]ok[/]   {claim}" if holds else f"[bold red]FAIL[/] {claim}")
        if not holds:
            self.failed.append(claim)


def main() -> int:
    OUTPUT.mkdir(exist_ok=True)
    console = Console()
    demo = Demo(console if console.is_terminal else Console(width=118))
    for part in (show_seed, export_seed, fit_logistic_regression, show_discussion):
        part(demo)
    demo.title("done")
    demo.console.print(f"files are in {OUTPUT.name}/")
    for claim in demo.failed:
        demo.console.print(f"[bold red]failed:[/] {claim}")
    return 1 if demo.failed else 0


def show_seed(demo: Demo) -> None:
    args = seed.example_args("f")
    demo.title("the seed function as a Program")
    program = pb.trace(seed.f)(*args)
    demo.console.print(str(program), markup=False, highlight=False, end="")
    demo.title("its VJP, made and optimised in Julia")
    demo.console.print(str(program.vjp().optimize()), markup=False, highlight=False, end="")
    demo.check("the Program reads back from its text", pb.parse(str(program)) == program)
    _compare(demo, "seed", seed.f, args)


def _compare(demo: Demo, name: str, f, args) -> None:
    demo.title(f"{name}: the engines compared")
    result = pb.compare(f, *args)
    demo.console.print(result)
    result.save_json(OUTPUT / f"{name}.json")
    result.to_html(OUTPUT / f"{name}.html")
    result.plot(OUTPUT / f"{name}.png")
    for row in result.rows:
        if row.state != "unavailable":
            demo.check(f"{name}: {row.engine} agrees with the float64 reference", row.state == "agrees")
    demo.check(f"{name}: transpose took part", result["transpose"].ran)


def export_seed(demo: Demo) -> None:
    """The VJP for accelerators and for the CPU; the latter is run from its file."""
    demo.title("the seed's VJP as StableHLO")
    args = seed.example_args("f")
    cotangent = np.random.default_rng(1).standard_normal(seed.SHAPE).astype(np.float32)
    derivative = pb.trace(seed.f)(*args).vjp().optimize()
    for name, platforms in (("accelerators", ("cuda", "tpu")), ("cpu", ("cpu",))):
        exported = pb.export(derivative, platforms)()
        path = OUTPUT / f"seed_vjp_{name}.stablehlo"
        path.write_bytes(exported.serialize())
        demo.console.print(
            f"{OUTPUT.name}/{path.name}: {path.stat().st_size} bytes for {', '.join(platforms)}"
        )
        demo.check(f"no custom call in it ({name})", "custom_call" not in exported.mlir_module())
    found = _run_elsewhere(OUTPUT / "seed_vjp_cpu.stablehlo", (*args, cotangent))
    expected = jax.vjp(seed.f, *args)[1](cotangent)
    for name, mine, theirs in zip(("x", "a"), found, map(np.asarray, expected), strict=True):
        error = np.max(np.abs(mine - theirs)) / np.max(np.abs(theirs))
        demo.check(
            f"run from its file without pybridge and Julia: cotangent of {name} {error:.1e} off jax.vjp's",
            error < CLOSE,
        )


def _run_elsewhere(path: Path, inputs: tuple) -> list[np.ndarray]:
    """The exported function's results, from a fresh process without Julia on its PATH."""
    with tempfile.TemporaryDirectory() as name:
        given, made = Path(name) / "inputs.npz", Path(name) / "outputs.npz"
        np.savez(given, **{f"x{i}": x for i, x in enumerate(inputs)})
        environment = {k: v for k, v in os.environ.items() if k not in ("PATH", "PYTHONPATH")}
        command = [sys.executable, str(HERE / "reload.py"), str(path), str(given), str(made)]
        subprocess.run(command, env=environment, check=True)
        with np.load(made) as arrays:
            return [arrays[f"arr_{i}"] for i in range(len(arrays))]


def fit_logistic_regression(demo: Demo) -> None:
    demo.title("logistic regression by Newton-CG, derivatives from Julia")
    demo.check("the same optimum as scipy's", logistic_regression.report())
    _compare(demo, "logistic", logistic_regression.loss, logistic_regression.example_args("loss"))


def show_discussion(demo: Demo) -> None:
    """Two forms of one function come down to the same derivative Program."""
    demo.title("two forms of one function: equations in the gradient")
    table = Table("form", "jax.grad's jaxpr", "Program, as made", "Program, optimised")
    counts = {}
    for f in (discussion.plain, discussion.simplified):
        args = discussion.example_args(f.__name__)
        theirs = count_equations(jax.make_jaxpr(jax.grad(f, argnums=(0, 1)))(*args))
        made = gradient_program(f, args)
        counts[f.__name__] = theirs, made.optimize().equation_count()
        table.add_row(f.__name__, str(theirs), str(made.equation_count()), str(counts[f.__name__][1]))
    demo.console.print(table)
    (theirs_plain, plain), (theirs_simplified, simplified) = counts.values()
    demo.check("both forms have as many equations", plain == simplified)
    demo.check("fewer than jax.grad's jaxprs", plain < theirs_plain and simplified < theirs_simplified)


def gradient_program(f, args):
    """The gradient of a scalar function as jax.grad gives it: the VJP at the cotangent 1.

    Of the optimised function: what it computes twice would get two cotangents, whose sum is not taken out of
    products after that, since it may overflow where the products do not.
    """
    vjp = pb.trace(f)(*args).optimize().vjp()
    return pb.trace(lambda *xs: vjp.to_jax()(*xs, 1.0))(*args)


if __name__ == "__main__":
    sys.exit(main())
