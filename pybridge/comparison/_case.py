"""A case: an engine on a Program at a point, along given directions; judged as a row of a comparison."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

from ..frontend.emission import to_jax
from ..ir.deferred import expanded
from ..ir.parser import parse
from ..ir.program import Program
from ..ir.widening import widened
from ._case_file import case_text
from ._engines import BASELINE
from ._problem import Arrays, Problem, problem
from ._reference import exact
from ._rows import Row
from ._session import Session

MODULE = "pybridge.comparison"


@dataclass(frozen=True, eq=False)
class Case:
    """tangents, cotangents: for each float or complex input, and for each such result.

    rtol: of the comparison, None for the default.
    """

    engine: str
    program: Program
    inputs: tuple[Any, ...]
    tangents: Arrays
    cotangents: Arrays
    rtol: float | None = None

    def problem(self) -> Problem:
        task = problem_of(self.program, self.inputs)
        return replace(task, tangents=self.tangents, cotangents=self.cotangents)

    def run(self) -> tuple[Session, Row]:
        """The engine and JAX, in this process. The row has what is off."""
        task = self.problem()
        session = Session(task, exact(task), {}, repeats=0, budget=0.0)
        for name in dict.fromkeys((self.engine, BASELINE)):
            session.run(name, isolate=False, timeout=0.0)
        session.settle()
        _, rows = session.finish(self.rtol)
        return session, next(row for row in rows if row.engine == self.engine)

    def write(self, path: str | Path, doc: str) -> None:
        directions: dict[str, Sequence[np.ndarray]] = {
            "inputs": [np.asarray(x) for x in self.inputs],
            "tangents": self.tangents,
            "cotangents": self.cotangents,
        }
        options: dict[str, Any] = {"x64": bool(jax.config.jax_enable_x64)}
        if self.rtol is not None:
            options["rtol"] = self.rtol
        text = case_text(doc, MODULE, self.engine, self.program, directions, options)
        Path(path).write_text(text, encoding="utf-8")


def problem_of(program: Program, inputs: Sequence[Any]) -> Problem:
    """A Program's function, with random directions."""
    whole = expanded(program)
    task = problem(to_jax(program), tuple(inputs), seed=0)
    return replace(task, in_double=to_jax(widened(whole)))


def wrong(row: Row) -> bool:
    return row.state == "disagrees" or row.failed


def reproduce(
    engine: str,
    text: str,
    inputs: Sequence[Any],
    tangents: Sequence[np.ndarray],
    cotangents: Sequence[np.ndarray],
    *,
    x64: bool,
    rtol: float | None = None,
) -> None:
    """Prints what the engine gives and what the reference has, by stage; ends with status 1 if it is wrong.

    The engine runs in this process, and may take it down.
    """
    print(program := parse(text))
    with jax.enable_x64(x64):
        case = Case(engine, program, tuple(inputs), tuple(tangents), tuple(cotangents), rtol)
        session, row = case.run()
    reference = session.exact.by_stage
    for name, measured in session.measured.items():
        _print(name, measured.results)
    _print(f"reference, JAX in {session.exact.precision}", reference)
    for line in (*row.disagreements, *row.reasons):
        print(f"{engine}: {line}")
    print(f"{engine} {row.state}")
    sys.exit(wrong(row))


def _print(name: str, results: Mapping[str, Sequence[np.ndarray] | None]) -> None:
    print(name)
    for stage in ("value", "jvp", "vjp"):
        for found in results.get(stage) or ():
            print(f"  {stage}: {np.array2string(found, prefix='  value: ')}")
