"""What was found: one file for each kind of failure, which reproduces it by itself."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..comparison import case_text
from ..ir.program import Program
from .judging import Failure
from .making import Sample


@dataclass(frozen=True, eq=False)
class Finding:
    """contender: whose failure it is. number: of the Program in the run. sample: shrunk."""

    contender: str
    seed: int
    number: int
    failure: Failure
    sample: Sample

    @property
    def key(self) -> str:
        """Findings with this in common are taken to be one mistake: what is raised, else the equations."""
        words = [self.contender, self.failure.kind]
        if self.failure.kind == "raises":
            return "\n".join([*words, _without_numbers(self.failure.detail)])
        return "\n".join([*words, *sorted(_ops(self.sample.program))])

    @property
    def name(self) -> str:
        words = [self.contender, self.failure.kind, *list(_ops(self.sample.program))[-2:]]
        mark = hashlib.sha256(self.key.encode()).hexdigest()[:6]
        return re.sub(r"\W+", "_", "_".join([*words, mark]))

    def write(self, folder: Path) -> Path:
        path = folder / f"{self.name}.py"
        path.write_text(_source(self), encoding="utf-8")
        return path

    def __str__(self) -> str:
        failure = self.failure
        return (
            f"{self.contender}: {failure.kind} in {failure.stage}: {failure.detail} (Program {self.number})"
        )


def _without_numbers(text: str) -> str:
    """And without shapes and variables, which differ from Program to Program."""
    return re.sub(r"0x\w+|%\S+|\[[^]]*\]|\b[\d.]+\b", "", text)[:120]


def _ops(program: Program) -> Iterator[str]:
    """The primitives with their first result's dtype, bodies included; each once."""
    seen: dict[str, None] = {}
    for eq in program.equations:
        for body in eq.bodies:
            seen |= dict.fromkeys(_ops(body))
        seen[f"{eq.op} {eq.outputs[0].type.dtype}"] = None
    yield from seen


def _source(found: Finding) -> str:
    sample = found.sample
    doc = f"{found}\nFound by `pybridge fuzz --seed {found.seed}`; shrunk."
    directions = {"inputs": sample.inputs, "tangents": sample.tangents, "cotangents": sample.cotangents}
    return case_text(doc, "pybridge.fuzz", found.contender, sample.program, directions, {})
