"""What a choice of tests is, and how much fits into the time there is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SECONDS = Path(__file__).resolve().parent / "seconds.tsv"
_UNKNOWN = 15.0  # seconds of a test file that is new


@dataclass(frozen=True)
class Candidate:
    """A test file with its rank, small for what a change breaks first.

    path: from the checkout's root. seconds: of one core. why: for the reader.
    """

    path: str
    rank: tuple[float, ...]
    seconds: float
    why: str


def known_seconds() -> dict[str, float]:
    """Seconds of one core of each test file, as `python -m tests.times --write` found them."""
    if not SECONDS.exists():
        return {}
    lines = (line.split("\t") for line in SECONDS.read_text(encoding="utf-8").splitlines())
    return {path: float(seconds) for path, seconds in lines}


def seconds_of(path: str, known: dict[str, float]) -> float:
    return known.get(path, _UNKNOWN)


def fitting(candidates: Iterable[Candidate], budget: float) -> tuple[list[Candidate], list[Candidate]]:
    """The candidates by rank, as long as the budget lasts, and those that are left out."""
    chosen, left_out = [], []
    for candidate in sorted(candidates, key=lambda c: (c.rank, c.seconds, c.path)):
        if candidate.seconds <= budget:
            chosen.append(candidate)
            budget -= candidate.seconds
        else:
            left_out.append(candidate)
    return chosen, left_out
