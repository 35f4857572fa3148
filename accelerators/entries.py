"""What is exported: the tests' cases with their derivatives, and gradients of the benchmarks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np

import pybridge as pb
from benchmarks import measure
from benchmarks.case import Case
from benchmarks.suites import SUITES
from conformance.exports import module_of_tests
from pybridge.errors import UnsupportedPrimitive

from .folder import Entry, Refused
from .run import CASE, OURS, ROW, THEIRS, error

ROOT = Path(__file__).resolve().parent.parent
PLATFORMS = ("cpu", "cuda")

# Devices round as they please: what is lost is some units in the last place times what the algorithm loses.
_ROUNDING = 1e-9
_SUITES = ("rows", "polybench")
_LARGEST = 4 << 20
"""Bytes of a row's arguments and results: files of more are slow to move."""
_SLOW = frozenset({"medium", "unrolled"})
"""Parts of names of rows that compile or run for minutes."""


def cases(wanted: Callable[[str], bool]) -> Iterator[Entry | Refused]:
    """Values, JVPs and VJPs in float64 and complex128; what is right is JAX's result on this CPU."""
    collection, harness = module_of_tests("cases"), module_of_tests("harness", "derivatives")
    for case in collection.FULL:
        if wanted(case.name):
            with case.context():
                yield _unless_refused(case.name, CASE, partial(_of_case, harness, case))


def _of_case(harness: Any, case: Any) -> Entry:
    setup = harness.Setup.of(case)
    exported = pb.export(_computation(setup, pb.bridge(case.f)), PLATFORMS)(*setup.given)
    reference = jax.jit(_computation(setup, harness.reference(case)))
    right = _leaves(reference(*setup.given))
    ours = _leaves(jax.jit(exported.call)(*setup.given))
    # Vectors of eigenvalues have more than one right sign: there the CPU's result of the export itself.
    unique = error(ours, right, least=1.0) <= _ROUNDING
    sides = {OURS: exported, **_theirs(reference, setup.given)}
    expected = right if unique else ours
    return Entry(case.name, CASE, sides, setup.given, expected, _ROUNDING, least=1.0, unique=unique)


def _computation(setup: Any, f: Callable) -> Callable:
    return setup.first_order(f) if setup.case.active else (lambda inputs, *_: f(*inputs))


def rows(wanted: Callable[[str], bool]) -> Iterator[Entry | Refused]:
    """Gradients of the benchmarks and JAX's own; what is right is JAX's in float64 on this CPU."""
    for case in (case for name in _SUITES for case in SUITES[name].cases):
        if case.make is None or not wanted(case.name) or any(part in case.name for part in _SLOW):
            continue
        with jax.enable_x64(case.x64):
            problem = case.make(False)
            size = sum(x.nbytes for x in _leaves(problem.args))
            size += sum(
                y.size * y.dtype.itemsize
                for y in jax.tree.leaves(jax.eval_shape(problem.ours, *problem.args))
            )
            if size <= _LARGEST:
                yield _unless_refused(case.name, ROW, partial(_of_row, case, problem))


def _of_row(case: Case, problem: Any) -> Entry:
    ours = pb.export(problem.ours, PLATFORMS)(*problem.args)
    sides = {OURS: ours, **_theirs(jax.jit(problem.reference), problem.args)}
    right = _leaves(measure.in_float64(problem.reference, problem.args))
    return Entry(case.name, ROW, sides, problem.args, right, case.tolerance, least=1e-30)


def _unless_refused(name: str, kind: str, make: Callable[[], Entry]) -> Entry | Refused:
    try:
        return make()
    except UnsupportedPrimitive as refusal:
        return Refused(name, kind, str(refusal))


def _theirs(f: Callable, args: tuple) -> dict[str, jax.export.Exported]:
    """JAX's own, where jax.export promises to keep what it calls."""
    try:
        return {THEIRS: jax.export.export(f, platforms=PLATFORMS)(*args)}
    except (ValueError, NotImplementedError):
        return {}


def _leaves(tree: Any) -> list[np.ndarray]:
    return [np.asarray(x) for x in jax.tree.leaves(tree)]
