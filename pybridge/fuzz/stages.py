"""What is asked of an engine: a Program's value, its derivative along tangents, and that of cotangents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import jax
import numpy as np

from ..ir.program import Program
from .making import Sample

Stage = Literal["value", "jvp", "vjp"]
STAGES: tuple[Stage, ...] = ("value", "jvp", "vjp")
Arrays = tuple[np.ndarray, ...]


@dataclass
class Outcome:
    """What an engine gave, by stage. failures: an exception's kind and first line.

    end: how the process ended, or nothing, in the stage after those that are there.
    """

    results: dict[Stage, Arrays] = field(default_factory=dict)
    failures: dict[Stage, str] = field(default_factory=dict)
    end: str = ""

    @property
    def ended_in(self) -> Stage:
        return next(s for s in STAGES if s not in self.results and s not in self.failures)


def stage_function(stage: Stage, f: Callable[..., Sequence[Any]], program: Program) -> Callable[..., tuple]:
    """Of (inputs, tangents, cotangents). Derivatives are by the inexact inputs, of the inexact results."""
    active = [i for i, t in enumerate(program.input_types) if t.inexact]
    kept = [i for i, t in enumerate(program.output_types) if t.inexact]

    def restricted(inputs: Sequence[Any]) -> Callable[..., tuple]:
        def of_active(*xs: Any) -> tuple:
            given = list(inputs)
            for i, x in zip(active, xs, strict=True):
                given[i] = x
            results = f(*given)
            return tuple(results[i] for i in kept)

        return of_active

    def value(inputs, tangents, cotangents):
        return tuple(f(*inputs))

    def jvp(inputs, tangents, cotangents):
        return jax.jvp(restricted(inputs), tuple(inputs[i] for i in active), tuple(tangents))[1]

    def vjp(inputs, tangents, cotangents):
        return jax.vjp(restricted(inputs), *(inputs[i] for i in active))[1](tuple(cotangents))

    return {"value": value, "jvp": jvp, "vjp": vjp}[stage]


def run(sample: Sample, f: Callable[..., Sequence[Any]], done: Callable[[Stage, Any], None]) -> None:
    """Every stage under its own jit; `done` gets the arrays of each, or a text, as soon as it is there."""
    for stage in STAGES:
        try:
            made = jax.jit(stage_function(stage, f, sample.program))
            found = made(sample.inputs, sample.tangents, sample.cotangents)
            done(stage, tuple(map(np.asarray, found)))
        except Exception as error:  # whatever it is, it is what the engine did
            done(stage, first_line(error))


def first_line(error: BaseException) -> str:
    """An exception's kind and the first line of what it says."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:300]}" if lines else type(error).__name__
