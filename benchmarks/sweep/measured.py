"""Measurements, whether what auto chooses is right by them, and the rates that they imply."""

from __future__ import annotations

import functools
import json
import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from pybridge.ir.cost_model import Times, Work, reason_for_xla, times, works
from pybridge.ir.parser import parse
from pybridge.ir.program import Program

AUTO, NATIVE, XLA = "auto", "julia", "xla"
LEFT = "left"
"""What a derivative takes with execute="auto" if all of its Programs are left to XLA. It is Julia's, while
with execute="xla" XLA has JAX's."""

WRONG = 1.3
"""A choice is wrong where what is chosen takes more than this many times what the other takes ..."""
_NOTICED = 3e-6
"""... and that many seconds more: less is the call of either."""
_TIMED = 5e-5
"""Seconds that a problem takes at least for a rate to follow from it."""


@dataclass(frozen=True)
class Measurement:
    """What a problem takes.

    seconds: natively, by XLA, of a gradient left to XLA, and of what auto chose where that is some of both.
        What failed has none.
    programs: the texts of the Programs that are chosen for. They are there so that a cost model that has
        changed since is judged by the same measurements.
    failure: why there are no times.
    """

    problem: str
    seconds: Mapping[str, float] = field(default_factory=dict)
    programs: tuple[str, ...] = ()
    failure: str = ""

    @property
    def choice(self) -> str:
        """Where all Programs run by the cost model as it is now: "julia", "xla", or "auto" for both."""
        if self.seconds and NATIVE not in self.seconds:
            return XLA
        chosen = {XLA if reason_for_xla(program) else NATIVE for program in map(_parsed, self.programs)}
        return chosen.pop() if len(chosen) == 1 else AUTO

    @property
    def chosen(self) -> float:
        """The seconds of the choice; infinite where they were not measured."""
        side = LEFT if self.choice == XLA and LEFT in self.seconds else self.choice
        return self.seconds.get(side, math.inf)

    @property
    def best(self) -> float:
        """The seconds of the best choice."""
        sides = (NATIVE, LEFT if LEFT in self.seconds else XLA, AUTO)
        return min((self.seconds[side] for side in sides if side in self.seconds), default=math.inf)

    @property
    def is_wrong(self) -> bool:
        """Another choice is better."""
        return _is_slower(self.chosen, self.best)

    @property
    def is_behind(self) -> bool:
        """Even the best choice is slower than execute="xla"."""
        return _is_slower(self.best, self.seconds.get(XLA, math.inf))

    @property
    def estimate(self) -> Times:
        """The cost model's, in nanoseconds."""
        return sum(map(times, map(_parsed, self.programs)), start=Times(0, 0))


def _is_slower(seconds: float, other: float) -> bool:
    return seconds > WRONG * other and seconds - other > _NOTICED


@functools.cache
def _parsed(text: str) -> Program:
    return parse(text)


def load(path: Path) -> list[Measurement]:
    """Those in a file, if it is there; the last of each problem."""
    lines = path.read_text().splitlines() if path.exists() else []
    measured = (Measurement(**json.loads(line)) for line in lines)
    return list({one.problem: one for one in measured}.values())


def append(path: Path, one: Measurement) -> None:
    with path.open("a") as file:
        print(json.dumps(asdict(one)), file=file)


# ---- rates


@dataclass(frozen=True)
class Rate:
    """Nanoseconds of a unit of work of an operation on numbers of a dtype, natively and by XLA.

    implied: by the measurements; assumed: by the cost model.
    """

    op: str
    dtype: str
    implied: Times
    assumed: Times
    measurements: int


def rates(measured: Iterable[Measurement]) -> Iterator[Rate]:
    """Of each operation that is most of what some problem takes, in the median of these problems."""
    found: dict[tuple[str, str], list[tuple[Times, Times]]] = defaultdict(list)
    for one in measured:
        if {NATIVE, XLA} <= one.seconds.keys() and min(one.seconds.values()) > _TIMED:
            leading, implied = _implied(one)
            found[leading.op, leading.dtype].append((implied, leading.rate))
    for (op, dtype), pairs in sorted(found.items()):
        implied, assumed = (_median(side) for side in zip(*pairs, strict=True))
        yield Rate(op, dtype, implied, assumed, len(pairs))


def _median(several: Iterable[Times]) -> Times:
    pairs = [(one.native, one.xla) for one in several]
    return Times(*map(statistics.median, zip(*pairs, strict=True)))


def _implied(one: Measurement) -> tuple[Work, Times]:
    """The operation that the model expects to take longest, and its rate if all others are right.

    Operations that share the dtype and the name are one.
    """
    done: dict[tuple[str, str], list[Work]] = defaultdict(list)
    for work in (work for program in map(_parsed, one.programs) for work in works(program)):
        done[work.op, work.dtype].append(work)
    longest = max(done.values(), key=lambda group: sum(w.times.native + w.times.xla for w in group))
    rest, units = one.estimate, sum(work.units for work in longest)
    for work in longest:
        rest = rest + work.times * -1
    sides = ((NATIVE, rest.native), (XLA, rest.xla))
    native, xla = ((1e9 * one.seconds[side] - other) / max(units, 1.0) for side, other in sides)
    return longest[0], Times(max(native, 0.0), max(xla, 0.0))
