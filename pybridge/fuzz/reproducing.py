"""What the files of findings call: one engine on one Program, compared with what is expected."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import jax

from ..comparison import array
from ..ir.parser import parse
from . import contenders, stages
from .judging import judge
from .making import Sample
from .reference import expected
from .stages import STAGES, Outcome

__all__ = ["array", "reproduce"]


def reproduce(contender: str, text: str, inputs: list, tangents: list, cotangents: list) -> None:
    """Prints what the engine gives and what is expected, by stage; ends with status 1 if it is wrong.

    The engine runs in this process, and may take it down.
    """
    program = parse(text)
    sample = Sample(program, tuple(inputs), tuple(tangents), tuple(cotangents))
    print(program)
    with jax.enable_x64(True):
        wanted = expected(sample)
        own = _outcome(contenders.BASELINE, sample)
        found = own if contender == contenders.BASELINE else _outcome(contender, sample)
    for stage in STAGES:
        print(f"{stage}: {contender}", *_shown(found, stage), sep="\n  ")
        runs = wanted.runs.get(stage)
        print(" expected", *(runs[0] if runs else [wanted.failures.get(stage)]), sep="\n  ")
    failure = judge(sample, wanted, found, None if contender == contenders.BASELINE else own)
    print("it is right now" if failure is None else f"{failure.kind} in {failure.stage}: {failure.detail}")
    sys.exit(failure is not None)


def _shown(found: Outcome, stage: stages.Stage) -> Sequence[Any]:
    return found.results.get(stage) or [found.failures.get(stage)]


def _outcome(contender: str, sample: Sample) -> Outcome:
    print(f"running {contender}", flush=True)
    made = Outcome()

    def done(stage: stages.Stage, found: Any) -> None:
        if isinstance(found, str):
            made.failures[stage] = found
        else:
            made.results[stage] = found

    stages.run(sample, contenders.function(contender, sample.program), done)
    return made
