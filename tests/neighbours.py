"""Which batches of cases are compiled as one program: a compilation has a price of its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from casekit import Case


def neighbours(batches: Iterable[Sequence[Case]], most: int = 16) -> dict[str, tuple[Case, ...]]:
    """For each case, by its name, those that are compiled with it: at most so many, but all of its batch.

    All of them have the same setting of 64-bit types.
    """
    groups: list[list[Case]] = []
    latest: dict[bool, list[Case]] = {}
    for cases in batches:
        x64 = cases[0].needs_x64
        if x64 not in latest or len(latest[x64]) + len(cases) > most:
            latest[x64] = []
            groups.append(latest[x64])
        latest[x64].extend(cases)
    return {case.name: tuple(group) for group in groups for case in group}
