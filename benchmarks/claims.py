"""What is required of several rows together."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from . import polybench
from .case import GRAD
from .polybench.kernel import Kind
from .results import Measured, Results

_NEWTON = ("newton-quadratic", "newton-hmm", "newton-logistic")
_BEST_NEWTON = 2.0
_LENGTHS = {"unrolled-200": 200, "unrolled-1000": 1000}
_POLYBENCH, _INDEXED = 10.0, 50.0  # times as fast, in the geometric mean
_LIMITS = 1.3  # times the time of what is written by hand, in the geometric mean
_LINEAR = 1.2  # times the ratio of the lengths: proportional growth, and what a machine's moods add


@dataclass(frozen=True)
class Claim:
    text: str
    met: bool


def claims(results: Results) -> Iterator[Claim]:
    """Those whose rows were measured."""
    for threads in sorted({row.threads for row in results.rows}):
        rows = {row.case: row for row in results.rows if row.threads == threads}
        where = f"on {threads} thread{'s' if threads > 1 else ''}"
        if all(name in rows for name in _NEWTON):
            yield _newton([rows[name] for name in _NEWTON], where)
        if all(name in rows for name in _LENGTHS) and not results.quick:
            yield from _growth([rows[name] for name in _LENGTHS], where)
        if not results.quick:
            yield from _families(rows, where)
            yield from _limits(rows, where)


def _newton(rows: list[Measured], where: str) -> Claim:
    ratios = [row.ratio(rival) or 0.0 for row in rows for rival in row.rivals]
    best = max(ratios)
    text = (
        f"Newton-CG {where}: {best:.2f} times as fast on the best of its problems, {_BEST_NEWTON:g} required"
    )
    return Claim(text, best >= _BEST_NEWTON and all(row.agrees for row in rows))


def _families(rows: Mapping[str, Measured], where: str) -> Iterator[Claim]:
    """Of Polybench's programs, together and by kind."""
    kinds = {case.name: kernel.kind for kernel, case in polybench.MEASURED}
    found = {name: rows[name] for name in kinds if name in rows}
    for kind, required in (
        (None, _POLYBENCH),
        *((kind, _INDEXED if kind is Kind.INDEXED else None) for kind in Kind),
    ):
        ratios = [row.ratio(GRAD) for name, row in found.items() if kind in (None, kinds[name])]
        known = [ratio for ratio in ratios if ratio]
        if not known:
            continue
        mean = statistics.geometric_mean(known)
        text = (
            f"Polybench {where}, {kind.value if kind else 'all'}: {mean:.3g} times as fast in the geometric "
            f"mean of {len(known)}"
        )
        if required is not None:
            text += f", {required:g} required"
        yield Claim(text, required is None or mean >= required)


def _limits(rows: Mapping[str, Measured], where: str) -> Iterator[Claim]:
    known = [row.over_limit for row in rows.values() if row.over_limit]
    if not known:
        return
    mean = statistics.geometric_mean(known)
    text = (
        f"By hand {where}: {mean:.3g} times its time in the geometric mean of {len(known)}, "
        f"at most {_LIMITS:g} allowed"
    )
    yield Claim(text, mean <= _LIMITS)


def _growth(rows: list[Measured], where: str) -> Iterator[Claim]:
    short, long = (row.ours.first for row in rows)
    if not short or not long:
        return
    few, many = _LENGTHS.values()
    most = _LINEAR * many / few
    text = (
        f"Unrolled loop {where}: {long / short:.2f} times the time for {many / few:g} times the elements, "
        f"at most {most:g} allowed"
    )
    yield Claim(text, long / short <= most)
