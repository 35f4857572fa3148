"""The place at which an engine leaves JAX, the numbers there, and a Program that shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from ..errors import ArgumentError
from ..ir.program import Equation
from ..quotients import widened
from ._rows import described

if TYPE_CHECKING:
    from ._case import Case

Mode = Literal["value", "jvp", "vjp"]
_MODES = {"value": "Value", "jvp": "JVP", "vjp": "VJP"}
_SHOWN = 6
"""Arrays of more elements are shown by their first and last two."""


@dataclass(frozen=True, eq=False)
class Numbers:
    """given: an equation's operands, of a JVP their tangents too, of a VJP its results' cotangents.

    found, expected: by name, what the engine makes of these, and JAX. What fails is not there.
    """

    given: Mapping[str, np.ndarray]
    found: Mapping[str, np.ndarray]
    expected: Mapping[str, np.ndarray]

    def lines(self, engine: str) -> Iterator[str]:
        lines = [(name, short(x)) for name, x in self.given.items()]
        for name in dict.fromkeys((*self.expected, *self.found)):
            mine, theirs = self.found.get(name), self.expected.get(name)
            lines += [(f"{name} by jax", short(theirs))] if theirs is not None else []
            lines += [(f"{name} by {engine}", short(mine))] if mine is not None else []
            if mine is not None and theirs is not None and (most := _worst(mine, theirs)):
                lines.append(("", most))
        width = max((len(name) for name, _ in lines), default=0)
        yield from (f"{name:{width}}  {text}" for name, text in lines)


@dataclass(frozen=True, eq=False)
class Disagreement:
    """index, equation, source: which equation of the function's Program, and the user's line.

    Of a candidate there are no equations: `equation` is empty, and `source` is its rule that is wrong, where
    one is.

    mode: "value" or "jvp" where the equation's result or its tangent differs; "vjp" where the cotangents
        differ that come back through it.
    leaf: of a candidate, the argument (of a VJP) or the result that is off.
    error: the largest relative difference from the reference of what the engine was found by: the equation's
        results, of a VJP the arguments' cotangents. None where the engine failed; then `reason` says how.
    numbers: at the equation.
    """

    index: int | None
    equation: str
    source: str
    mode: Mode
    error: float | None
    reason: str = ""
    leaf: str = ""
    engine: str = ""
    numbers: Numbers | None = field(default=None, repr=False)
    smallest_case: Callable[[], Case] | None = field(default=None, repr=False)

    def save(self, path: str | Path) -> None:
        """Writes a Python file that shows the disagreement by itself, and exits with 1 while it is there.

        It has the equation alone, at its operands and directions; if the engine is right on that, the
        equation with as many of those before it (1, 3, 7 ...) as it takes; else the whole function.

        Raises ArgumentError for a candidate, which is no Program.
        """
        if self.smallest_case is None:
            raise ArgumentError(
                "a candidate is a function of its own, of which there is no Program to save; its rule is "
                + (f"at {self.source}" if self.source else "not known")
            )
        self.smallest_case().write(path, f"{self.engine}: {self.summary}\nSaved by pybridge's `compare`.")

    @property
    def summary(self) -> str:
        """In one line."""
        found = self.reason or f"relative difference {self.error:.1e}"
        at = f" at {self.source}" if self.source else ""
        if not self.equation:
            return f"{described(self.mode, self.leaf)}{at} ({found})"
        return f"{_MODES[self.mode]} of equation {self.index}{at}: {self.equation} ({found})"

    def __str__(self) -> str:
        numbers = self.numbers.lines(self.engine) if self.numbers else ()
        return "\n".join([self.summary, *(f"  {line}" for line in numbers)])


def equation_text(eq: Equation) -> str:
    """Without its attributes, which may have whole Programs."""
    results = ", ".join(f"{v}: {v.type}" for v in eq.outputs)
    return f"{results} = {eq.op} {' '.join(map(str, eq.inputs))}".rstrip()


def short(array: np.ndarray) -> str:
    """In one line."""
    flat = np.ravel(widened(array))
    ends = flat if flat.size <= _SHOWN else np.concatenate([flat[:2], flat[-2:]])
    words = [f"{x:.6g}" for x in ends]
    if flat.size > _SHOWN:
        words.insert(2, f"… ({flat.size})")
    return " ".join(words) if array.ndim else words[0]


def _worst(mine: np.ndarray, theirs: np.ndarray) -> str:
    """The element that is off most."""
    if mine.size <= _SHOWN or mine.shape != theirs.shape:
        return ""
    with np.errstate(invalid="ignore"):
        off = np.abs(widened(mine) - widened(theirs))
        off = np.where(np.isnan(off), np.where(np.isnan(mine) & np.isnan(theirs), 0, np.inf), off)
    place = np.unravel_index(int(np.argmax(off)), off.shape)
    if off[place] == 0:
        return ""
    index = ", ".join(map(str, place))
    return f"most at [{index}]: {widened(mine)[place]:.6g}, by jax {widened(theirs)[place]:.6g}"
