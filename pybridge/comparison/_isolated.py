"""An engine measured in a process of its own, which may die or hang without taking this one along.

The child gets the function as a Program, so anything that can be traced can be isolated: closures and
functions typed at a prompt too. It leaves each result in a folder as soon as it has it.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import jax
import numpy as np

from ..frontend import tracing
from . import _archive
from ._measure import Measured, Stage, stages_of
from ._nestings import NESTINGS
from ._problem import Arrays, Problem
from ._rows import Memory


@dataclass(frozen=True, eq=False)
class Answer:
    """What came back. seconds: by stage, medians of the engine and of `jax` there, where both ran."""

    measured: Measured
    seconds: Mapping[str, tuple[float, float]]


def measure_elsewhere(
    problem: Problem, engine: str, order: int, rounds: int, budget: float, patience: float
) -> Answer:
    """Raises what tracing raises; whatever happens in the child is part of the answer."""
    program = tracing.trace(problem.f)(*problem.args)
    with tempfile.TemporaryDirectory(prefix="pybridge-compare-") as name:
        folder = Path(name)
        job = {
            "engine": engine,
            "order": order,
            "program": program.text,
            "x64": bool(jax.config.jax_enable_x64),
            "active": problem.active,
            "rounds": rounds,
            "budget": budget,
        }
        (folder / "job.json").write_text(json.dumps(job))
        _archive.save(folder / "constants.npz", program.constants)
        arrays = {
            "leaf": [np.asarray(jax.numpy.asarray(x)) for x in problem.leaves],
            "tangent": problem.tangents,
            "cotangent": problem.cotangents,
            "other": problem.other_tangents,
        }
        named = {f"{kind}{i:05}": a for kind, group in arrays.items() for i, a in enumerate(group)}
        _archive.save(folder / "arrays.npz", named)
        end = _run(folder, patience)
        return _answer(folder, stages_of(order), end)


def _run(folder: Path, patience: float) -> str:
    """Runs the child to its end; how it ended, or nothing if well."""
    paths = [str(Path(__file__).resolve().parents[2]), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",  # this process may hold most of an accelerator's memory
    }
    command = [sys.executable, "-m", "pybridge.comparison._worker", str(folder)]
    with (
        (folder / "said").open("wb") as said,
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            env=environment,
            start_new_session=True,
        ) as child,
    ):
        try:
            code = child.wait(patience)
        except subprocess.TimeoutExpired:
            return f"no answer within {patience:g} s"
        finally:
            if child.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)
    if code == 0:
        return ""
    how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"exited with status {code}"
    return f"the process {how}{_last_words(folder)}"


def _last_words(folder: Path) -> str:
    lines = (folder / "said").read_text(errors="replace").strip().splitlines()
    telling = [line for line in lines if "rror" in line or "ssert" in line] or lines
    return f" ({telling[-1].strip()[:200]})" if telling else ""


def _answer(folder: Path, asked: Sequence[Stage], end: str) -> Answer:
    told = {path.stem: json.loads(path.read_text()) for path in folder.glob("*.json") if path.stem != "job"}
    results: dict[str, Arrays] = {
        s: tuple(_archive.load(folder / f"{s}.npz").values()) for s in asked if (folder / f"{s}.npz").exists()
    }
    failures: dict[str, str] = {s: told[s]["failure"] for s in asked if s in told and told[s]["failure"]}
    if end:
        missing = [s for s in asked if s not in told]
        failures[missing[0] if missing else "times"] = end
    first = next((told[s]["first_gradient"] for s in asked if s in told), None)
    memory = Memory(**told["memory"]) if told.get("memory") else None
    return Answer(Measured(results, failures, first, memory=memory), told.get("times", {}))


def stages(failures: Mapping[str, str]) -> Iterator[str]:
    """The failures as sentences; one that hit several stages alike is said once."""
    for reason in dict.fromkeys(failures.values()):
        where = [
            {"vjp": "VJP", "jvp": "JVP"}.get(stage, f"HVP {stage}" if stage in NESTINGS else stage)
            for stage, r in failures.items()
            if r == reason
        ]
        yield f"{', '.join(where)}: {reason}"
