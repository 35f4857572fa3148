"""The result of `compare`, and the forms in which it can be had."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ..quotients import Verdict
from ._engines import BASELINE
from ._problem import Arrays, Problem
from ._rows import Reference, Row, judged
from ._shown import Saved, finite

if TYPE_CHECKING:
    from ._disagreement import Disagreement
    from ._table import Layout


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Saved):
    """One row for each engine. Prints as a table; `table()` is the same for rich.

    function, arguments: what was compared, and at which types.
    epsilon: the unit roundoff of the coarsest precision involved.
    machine: date, processor and versions.
    rtol: the tolerance that was asked for, None for the default.
    vjp: the reference's.
    """

    function: str
    arguments: str
    seed: int
    epsilon: float
    reference: Reference
    rows: tuple[Row, ...]
    problem: Problem
    machine: Mapping[str, str] = field(default_factory=dict)
    rtol: float | None = None
    candidates: Mapping[str, Callable] = field(default_factory=dict)
    vjp: Arrays | None = None

    def __repr__(self) -> str:
        states = ", ".join(f"{row.engine} {row.state}" for row in self.rows)
        called = f"{self.function}({self.arguments})"
        return f"<Comparison of {called}: {states}; derivative {self.derivative}>"

    def __getitem__(self, engine: str) -> Row:
        for row in self.rows:
            if row.engine == engine:
                return row
        raise KeyError(
            f"no engine {engine!r} was compared; there are {', '.join(r.engine for r in self.rows)}"
        )

    @property
    def ok(self) -> bool:
        """Whether the engines agree, and nothing speaks against the derivative being that of the value, nor
        against the second derivative being that of the first, where it was asked for.
        """
        second = self.reference.second
        return self.agrees() and self.derivative != "wrong" and not (second and second.derivative == "wrong")

    @property
    def derivative(self) -> Verdict:
        """Whether the derivative is that of the value: "right", "wrong", or "unclear".

        Engines can agree in one that is wrong, since all take the rules that the user gave; `pb.check` says
        which rule it is.
        """
        return self.reference.derivative

    def agrees(self, rtol: float | None = None) -> bool:
        """Whether no engine that ran disagrees with the reference, and `jax` is not the only one that ran.

        It says nothing about the user's own rules, which are the reference's too: that is `derivative`.

        rtol: the relative error to allow in place of the one that the rows were judged by.
        """
        rows = self.rows if rtol is None else self._judged(rtol)
        ran = [row for row in rows if row.ran]
        return len(ran) > 1 and all(row.state != "disagrees" for row in ran)

    def _judged(self, rtol: float) -> tuple[Row, ...]:
        return tuple(judged(r, self["jax"], self.reference, self.epsilon, rtol) for r in self.rows)

    def first_disagreement(self, engine: str | None = None) -> Disagreement | None:
        """The equation of the function's Program at which the engine's derivative is no longer right.

        engine: by default the first one that disagrees. None where nothing differs.

        Printed, it has the numbers there; `save(path)` writes a small Program that shows it by itself. A
        candidate is an implementation of its own, with other equations: what is found is the argument or
        result that is off most, and the candidate's rule that is wrong.
        """
        from ._locate import candidate_disagreement, first_disagreement

        name = engine or next((row.engine for row in self.rows if row.state == "disagrees"), None)
        if name is None:
            return None
        if name in self.candidates:
            return candidate_disagreement(self.problem, self.candidates[name], self[name], self.rtol)
        if name == BASELINE:
            return candidate_disagreement(self.problem, self.problem.f, self[name], self.rtol)
        baseline = None if self.reference.by_operation else self[BASELINE]
        return first_disagreement(self.problem, self[name], baseline, self.vjp, self.rtol)

    def table(self) -> Layout:
        """For rich's `print`."""
        from ._table import table

        return table(self)

    def __rich__(self) -> Layout:
        return self.table()

    def to_json(self) -> str:
        """All numbers; NaN and infinities as the strings "nan", "inf" and "-inf"."""
        data = {
            "function": self.function,
            "arguments": self.arguments,
            "seed": self.seed,
            "epsilon": self.epsilon,
            "agrees": self.agrees(),
            "derivative": self.derivative,
            "machine": dict(self.machine),
            "reference": asdict(self.reference),
            "rows": [asdict(row) for row in self.rows],
        }
        return json.dumps(finite(data), indent=2, allow_nan=False)

    def to_html(self, path: str | Path) -> None:
        """One file, which refers to nothing else: the table, the picture, the Program next to its VJP by
        source line, and the environment; light or dark as the browser is.
        """
        from ._page._comparison_page import comparison_page

        Path(path).write_text(comparison_page(self), encoding="utf-8")

    def to_markdown(self) -> str:
        """To paste into an issue."""
        from ._markdown import markdown

        return markdown(self)

    def plot(self, path: str | Path) -> None:
        """Errors and times as a picture; the format follows the suffix (.png, .svg, .pdf).

        Raises UnknownOption for another.
        """
        from ._plot import figure, picture_format

        figure(self).savefig(path, format=picture_format(path), bbox_inches="tight")
