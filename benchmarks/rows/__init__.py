"""Every benchmark, in the order of the table."""

from __future__ import annotations

from ..case import Case
from . import (
    adbench,
    batches,
    differences,
    indexed,
    irregular,
    mechanics,
    newton,
    scalar,
    scans,
    seed,
    training,
    unrolled,
)

CASES: tuple[Case, ...] = (
    *seed.CASES,
    *scalar.CASES,
    *scans.CASES,
    *indexed.CASES,
    *mechanics.CASES,
    *batches.CASES,
    *differences.CASES,
    *unrolled.CASES,
    *irregular.CASES,
    *newton.CASES,
    *adbench.CASES,
    *training.CASES,
)
