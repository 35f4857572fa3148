"""Problems one after the other, each in a process of its own, which may die or hang."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from benchmarks.processes import PREPARE

from .environments import ROOT
from .problem import Problem
from .results import Result, read

RESULTS = Path(__file__).resolve().parent / "results"


def run(
    problems: Sequence[Problem], python: Path, limit: float, again: bool
) -> Iterator[tuple[Problem, Result]]:
    """Each problem with its result, kept in `results/` as soon as it is there.

    One that is there of the same sources is not run anew, unless `again`.
    """
    jax = _ask(python, "import jax; print(jax.__version__)")
    file = RESULTS / f"jax-{jax}.json"
    known = load(file)
    for problem in problems:
        sources = _digest(problem)
        old = known.get(problem.name)
        if again or old is None or old.sources != sources:
            old = replace(run_one(problem, python, limit), jax=jax, sources=sources)
            known[problem.name] = old
            _save(file, known)
        yield problem, old


def run_one(problem: Problem, python: Path, limit: float, *, timed: bool = True) -> Result:
    """Runs a problem in a process of its own, which may die or hang: that is then the result's `end`.

    python: the interpreter. limit: seconds for the process. timed: whether later calls are timed, too.
    """
    with tempfile.TemporaryDirectory(prefix="pybridge-zoo-") as name:
        file, said = Path(name) / "result.json", Path(name) / "said"
        options = () if timed else ("--untimed",)
        # A first result is one with a cache as `pybridge setup` leaves it, without kernels of earlier runs.
        variables = {"PYBRIDGE_CACHE": f"{name}/cache"} if timed else {}
        if timed:
            _wait([str(python), *PREPARE], said, limit, variables)
        command = [str(python), "-m", "zoo.worker", problem.name, str(file), *options]
        end = _wait(command, said, limit, variables)
        found = read(json.loads(file.read_text())) if file.exists() else Result(problem.name)
        return replace(found, end=end and end + _last_words(said))


def load(file: Path) -> dict[str, Result]:
    """The results in a file, by the problem's name."""
    told = json.loads(file.read_text()) if file.exists() else []
    return {result.name: result for result in map(read, told)}


def _save(file: Path, known: dict[str, Result]) -> None:
    file.parent.mkdir(exist_ok=True)
    whole = file.with_suffix(".new")
    whole.write_text(json.dumps([asdict(known[name]) for name in sorted(known)], indent=1) + "\n")
    whole.replace(file)


def _wait(command: list[str], said: Path, limit: float, variables: dict[str, str]) -> str:
    """Runs the process to its end, and says how it ended; nothing if well."""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"} | variables
    with (
        said.open("wb") as output,
        subprocess.Popen(
            command,
            cwd=said.parent,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=environment,
            start_new_session=True,
        ) as child,
    ):
        try:
            code = child.wait(limit)
        except subprocess.TimeoutExpired:
            return f"no end within {limit:g} s"
        finally:
            if child.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)
    if code < 0:
        return f"ended by {signal.Signals(-code).name}"
    return f"exited with status {code}" if code else ""


def _last_words(said: Path) -> str:
    lines = [
        line for line in said.read_text(errors="replace").splitlines() if any(map(str.isalnum, line))
    ]  # XLA puts some between rows of stars
    telling = [line for line in lines if "Error" in line or "error:" in line] or lines
    return f": {telling[-1].strip()[:200]}" if telling else ""


def _digest(problem: Problem) -> str:
    """Of everything on which the result depends, but for what is installed."""
    digest = hashlib.sha256(repr(problem).encode())
    own = ROOT / "zoo" / "problems" / f"{problem.module}.py"
    files = [*ROOT.glob("pybridge/**/*.py"), *ROOT.glob("julia/src/**/*.jl"), ROOT / "zoo" / "worker.py", own]
    for file in sorted(files):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _ask(python: Path, code: str) -> str:
    return subprocess.run(
        [str(python), "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()
