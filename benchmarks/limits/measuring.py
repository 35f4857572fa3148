"""Runs a row's Julia file on the row's data, and compares its results with JAX's."""

from __future__ import annotations

import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np

from pybridge.runtime import julia

from ..case import Case, Limit, Problem
from ..measure import error, in_float64
from ..results import Side

_FOLDER = Path(__file__).parent
_ROUNDS, _QUICK_ROUNDS = 41, 3
_PATIENCE = 300.0  # seconds


def measure(case: Case, quick: bool) -> Side:
    """The median time of a case's limit, on the cores that this process may use.

    A result that is not JAX's in float64, within the row's tolerance, is a failure, without a time.
    """
    limit = case.limit
    assert limit is not None and case.make is not None
    with jax.enable_x64(case.x64):
        problem = case.make(quick)
        wanted = in_float64(problem.reference, problem.args)
    side, results = _run(limit, problem, quick)
    if side.failure:
        return side
    leaves, tree = jax.tree.flatten(wanted)
    ends = np.cumsum([leaf.size for leaf in leaves])
    if results.size != ends[-1]:
        return Side(failure=f"{limit.file} gives {results.size} numbers, and JAX {ends[-1]}")
    parts = np.split(results, ends[:-1])
    found = tree.unflatten([x.reshape(leaf.shape) for x, leaf in zip(parts, leaves, strict=True)])
    wrong = error(found, wanted)
    if wrong > case.tolerance:
        return Side(error=wrong, failure=f"{limit.file} is not JAX's derivative: its error is {wrong:.0e}")
    return replace(side, error=wrong)


def _run(limit: Limit, problem: Problem, quick: bool) -> tuple[Side, np.ndarray]:
    """The time of a call, and all results one after the other, where Julia did not fail."""
    with tempfile.TemporaryDirectory(prefix="pybridge-limit-") as folder:
        for k, x in enumerate([*jax.tree.leaves(problem.args), *problem.constants]):
            np.save(Path(folder) / f"{k}.npy", np.asarray(x, np.float64, order="C"))
        command = (
            julia.find().require().executable,
            "--startup-file=no",
            _FOLDER / "run.jl",
            _FOLDER / limit.file,
            folder,
            _QUICK_ROUNDS if quick else _ROUNDS,
        )
        try:
            done = subprocess.run(
                tuple(map(str, command)),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=_PATIENCE,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Side(failure=f"{limit.file}: no answer within {_PATIENCE:g} s"), np.empty(0)
        if done.returncode:
            said = next((line for line in done.stderr.splitlines() if line.startswith("ERROR")), "no message")
            return Side(failure=f"{limit.file}: status {done.returncode}, {said[:300]}"), np.empty(0)
        return Side(seconds=float(done.stdout)), np.fromfile(Path(folder) / "results")
