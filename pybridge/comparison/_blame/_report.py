"""The result of `blame`."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from .._shown import Saved, finite

if TYPE_CHECKING:
    from rich.console import Group

    from ._stages import Stage

Kind = Literal["nan", "inf"]


@dataclass(frozen=True)
class Operand:
    """name: a variable of the Program, or a number. value: the element that was met, else a summary."""

    name: str
    type: str
    value: str


@dataclass(frozen=True)
class NonFinite:
    """A NaN or an infinity in a result, and the equation that made it of operands without one.

    stage: in which Program: that of the value, JAX's JVP or JAX's VJP. result: what has it.
    equation: the text; where nothing computed it, the name of the argument or constant that has it.
    source: the user's line. number: of the equation in its body. place: trips and branches around it,
        outermost first, such as ("trip 900",). index: of the first such element.
    way_out: what to write instead. cause: of a NaN that was made of an infinity, where that comes from.
    """

    stage: Stage
    kind: Kind
    result: str
    op: str
    equation: str
    source: str
    number: int | None
    place: tuple[str, ...]
    index: tuple[int, ...]
    operands: tuple[Operand, ...]
    way_out: str
    cause: NonFinite | None = None

    @property
    def where(self) -> str:
        """The line, the trips and the branches, as far as there are any."""
        return ", ".join(filter(None, (self.source, *self.place)))

    @property
    def causes(self) -> Iterator[NonFinite]:
        """What it was made of, and what that was made of, to the first."""
        cause = self.cause
        while cause is not None:
            yield cause
            cause = cause.cause

    def __str__(self) -> str:
        what = "NaN" if self.kind == "nan" else "infinity"
        return f"{what} in the {self.stage}: {self.op or self.equation} at {self.where or 'no line'}"


@dataclass(frozen=True)
class Charge:
    """What the rounding of one equation adds to the bound of a result's error.

    error: absolute, over all trips of loops. place: the trip in which it is largest, and the branches.
    condition: by how much a sum that cancels magnifies the errors of its operands, or None;
        inherited: the part of the result's error that one unit of roundoff in these operands makes.
    """

    op: str
    equation: str
    source: str
    number: int
    place: tuple[str, ...]
    error: float
    condition: float | None = None
    inherited: float = 0.0


@dataclass(frozen=True)
class Rounding:
    """A bound, to first order, of what rounding does to one element of the results.

    result, index, value: the element. bound: of its absolute error.
    by_arguments: the error that one unit of roundoff in each argument makes, which no algorithm avoids.
    charges: by equation, largest first; those of the same equation in all trips are one.
    measured: the error itself, at the arguments' precision against float64, or in float32 for functions of
        float64, which `coarse_bound` is the bound of; None where the function does not run in both.
    uncovered: operations whose errors or derivatives are not known, so that the bound lacks them.
    """

    result: str
    index: tuple[int, ...]
    value: float
    magnitude: float
    unit: float
    bound: float
    by_arguments: float
    charges: tuple[Charge, ...]
    measured: float | None = None
    coarse_bound: float | None = None
    uncovered: tuple[str, ...] = ()

    @property
    def relative(self) -> float:
        """The bound, relative to the largest magnitude in the same result."""
        return self.bound / self.magnitude if self.magnitude else (0.0 if self.bound == 0 else float("inf"))

    @property
    def amplification(self) -> float:
        """How many times the error is that rounded arguments and a rounded result have anyway."""
        unavoidable = self.by_arguments + self.unit * self.magnitude
        return self.bound / unavoidable if unavoidable else (1.0 if self.bound == 0 else float("inf"))

    @property
    def cancellations(self) -> tuple[Charge, ...]:
        """Sums that cancel and carry a good part of the bound, worst first."""
        found = [c for c in self.charges if (c.condition or 0) >= 100 and c.inherited >= 1e-3 * self.bound]
        return tuple(sorted(found, key=lambda c: -c.inherited))

    @property
    def ok(self) -> bool:
        """Whether the function does not lose much more than its arguments' rounding and half the digits."""
        return self.amplification <= 100 or self.relative <= self.unit**0.5


@dataclass(frozen=True, repr=False)
class Blame(Saved):
    """What `blame` found. `ok`: nothing. Prints as tables.

    nonfinite: at most one for each of value, JVP and VJP. rounding: of the result's element with the largest
    relative bound; None where a value is not finite. notes: what could not be looked at, and why.
    """

    function: str
    arguments: str
    nonfinite: tuple[NonFinite, ...]
    rounding: Rounding | None
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.nonfinite and (self.rounding is None or self.rounding.ok)

    def __repr__(self) -> str:
        return f"<Blame of {self.function}({self.arguments}): {self._summary()}>"

    def _summary(self) -> str:
        if self.nonfinite:
            return "; ".join(map(str, self.nonfinite))
        if self.rounding is None:
            return "nothing"
        state = "nothing" if self.rounding.ok else "rounding"
        return f"{state}, relative error at most {self.rounding.relative:.1e}"

    def __rich__(self) -> Group:
        from ._table import table

        return table(self)

    def to_json(self) -> str:
        """Everything, as one JSON object; what is not finite as text."""
        return json.dumps(finite({**dataclasses.asdict(self), "ok": self.ok}), indent=1)

    def to_html(self, path: str | Path) -> None:
        """One file, which refers to nothing else: what is blamed, and the source lines coloured by it."""
        from .._page._blame_page import blame_page

        Path(path).write_text(blame_page(self), encoding="utf-8")

    def to_markdown(self) -> str:
        """To paste into an issue."""
        return "\n".join(_markdown(self))


def _markdown(blame: Blame) -> Iterator[str]:
    yield f"**blame of `{blame.function}({blame.arguments})`**: {blame._summary()}"
    for found in blame.nonfinite:
        yield from ("", f"- {found}, of {found.result}; way out: {found.way_out}")
        yield from (f"  - from {cause}: {cause.way_out}" for cause in found.causes)
    if blame.rounding is not None and blame.rounding.charges:
        yield from ("", "| line | equation | trip | error | condition |", "|---|---|---|---|---|")
        for c in blame.rounding.charges[:10]:
            condition = "" if c.condition is None else f"{c.condition:.1e}"
            yield f"| {c.source} | `{c.equation}` | {', '.join(c.place)} | {c.error:.1e} | {condition} |"
    yield from (f"\n{note}." for note in blame.notes)
