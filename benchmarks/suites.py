"""The families of benchmarks: what each measures, and the page that tells of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from . import choices, polybench, rows
from .case import Case


@dataclass(frozen=True)
class Suite:
    """page: its file in docs/measurements/, without ending, and that of its picture."""

    name: str
    page: str
    cases: tuple[Case, ...]


SUITES = {
    suite.name: suite
    for suite in (
        Suite("rows", "benchmarks", rows.CASES),
        Suite("polybench", "polybench", polybench.CASES),
        Suite("choices", "choices", choices.CASES),
    )
}


def cases() -> Iterator[Case]:
    """Of all families, in the order of the tables."""
    for suite in SUITES.values():
        yield from suite.cases


def named(name: str) -> Case:
    return next(case for case in cases() if case.name == name)
