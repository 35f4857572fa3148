"""The result of `compare`, and the forms in which it can be had."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._problem import Problem
from ._rows import Reference, Row, judge

if TYPE_CHECKING:
    from rich.console import Group

    from ._locate import Disagreement

_WIDTH = 118


@dataclass(frozen=True, eq=False)
class Comparison:
    """One row for each engine. Prints as a table; `table()` is the same for rich.

    function, arguments: what was compared, and at which types.
    epsilon: the unit roundoff of the coarsest precision involved.
    machine: date, processor and versions.
    rtol: the tolerance that was asked for, None for the default.
    """

    function: str
    arguments: str
    seed: int
    epsilon: float
    reference: Reference
    rows: tuple[Row, ...]
    problem: Problem = field(repr=False)
    machine: Mapping[str, str] = field(default_factory=dict)
    rtol: float | None = None

    def __getitem__(self, engine: str) -> Row:
        for row in self.rows:
            if row.engine == engine:
                return row
        raise KeyError(
            f"no engine {engine!r} was compared; there are {', '.join(r.engine for r in self.rows)}"
        )

    def agrees(self, rtol: float | None = None) -> bool:
        """Whether no engine that ran disagrees with the reference, and `jax` is not the only one that ran.

        rtol: the relative error to allow in place of the one that the rows were judged by.
        """
        rows = self.rows if rtol is None else self._judged(rtol)
        ran = [row for row in rows if row.ran]
        return len(ran) > 1 and all(row.state != "disagrees" for row in ran)

    def _judged(self, rtol: float) -> tuple[Row, ...]:
        fresh = [replace(r, state="failed" if r.reasons else "agrees") if r.ran else r for r in self.rows]
        return tuple(
            replace(r, state=judge(r, self["jax"], self.reference, self.epsilon, rtol)) for r in fresh
        )

    def first_disagreement(self, engine: str | None = None) -> Disagreement | None:
        """The first equation of the function's Program at which the engine's derivative leaves JAX's.

        engine: by default the first one that disagrees. None where nothing differs.
        Raises UnknownOption for a candidate, whose Program need not resemble the function's.
        """
        from ._locate import first_disagreement

        name = engine or next((row.engine for row in self.rows if row.state == "disagrees"), None)
        if name is None:
            return None
        return first_disagreement(self.problem, self[name].engine, self.rtol)

    def table(self) -> Group:
        """For rich's `print`."""
        from ._table import table

        return table(self)

    def __rich__(self) -> Group:
        return self.table()

    def __str__(self) -> str:
        from rich.console import Console

        text = io.StringIO()
        Console(file=text, width=_WIDTH, color_system=None).print(self.table())
        return "\n".join(line.rstrip() for line in text.getvalue().splitlines())

    def to_json(self) -> str:
        """All numbers; NaN and infinities as the strings "nan", "inf" and "-inf"."""
        data = {
            "function": self.function,
            "arguments": self.arguments,
            "seed": self.seed,
            "epsilon": self.epsilon,
            "agrees": self.agrees(),
            "machine": dict(self.machine),
            "reference": asdict(self.reference),
            "rows": [asdict(row) for row in self.rows],
        }
        return json.dumps(_finite(data), indent=2, allow_nan=False)

    def save_json(self, path: str | Path) -> None:
        Path(path).write_text(self.to_json() + "\n", encoding="utf-8")

    def to_html(self, path: str | Path) -> None:
        """One file with the table and the picture in it; it refers to nothing else."""
        from ._html import html

        Path(path).write_text(html(self), encoding="utf-8")

    def plot(self, path: str | Path) -> None:
        """Errors and times as a picture; the format follows the suffix (.png, .svg, .pdf)."""
        from ._plot import figure

        figure(self).savefig(path, bbox_inches="tight")


def _finite(value: Any) -> Any:
    match value:
        case float() if not math.isfinite(value):
            return str(value)
        case dict():
            return {key: _finite(v) for key, v in value.items()}
        case list() | tuple():
            return [_finite(v) for v in value]
    return value
