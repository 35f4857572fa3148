"""The other end of `_isolated`: measures one engine and leaves the results in the folder that it is given."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

import jax

from ..ir.parser import parse
from . import _archive
from ._engines import candidate
from ._measure import Candidate, Measured, Stage, measure
from ._problem import Problem
from ._timing import interleaved


def main(folder: Path) -> None:
    job = json.loads((folder / "job.json").read_text())
    jax.config.update("jax_enable_x64", job["x64"])
    problem = _problem(folder, job)

    def leave(stage: Stage, so_far: Measured) -> None:
        if stage in so_far.results:
            results = enumerate(so_far.results[stage])
            _archive.save(folder / f"{stage}.npz", {f"{i:05}": a for i, a in results})
        told = {"failure": so_far.failures.get(stage), "first_gradient": so_far.first_gradient}
        (folder / f"{stage}.json").write_text(json.dumps(told))

    measured = measure(candidate(job["engine"], problem.f), problem, leave, job["order"])
    (folder / "memory.json").write_text(json.dumps(measured.memory and asdict(measured.memory)))
    baseline = measure(Candidate("jax", problem.f), problem)
    both = [s for s in ("value", "vjp") if job["rounds"] and s in measured.calls and s in baseline.calls]
    times = {}
    for stage in both:
        calls = [measured.calls[stage], baseline.calls[stage]]
        times[stage] = interleaved(calls, job["rounds"], job["budget"])
    (folder / "times.json").write_text(json.dumps(times))


def _problem(folder: Path, job: dict) -> Problem:
    arrays = _archive.load(folder / "arrays.npz")

    def group(kind: str) -> tuple:
        return tuple(arrays[name] for name in sorted(arrays) if name.startswith(kind))

    program = parse(job["program"], _archive.load(folder / "constants.npz"))
    f, leaves = program.to_jax(), group("leaf")
    tree = jax.tree.structure(leaves)
    active = tuple(job["active"])
    directions = group("tangent"), group("cotangent"), group("other")
    return Problem(program.name, f, leaves, tree, leaves, active, *directions)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
