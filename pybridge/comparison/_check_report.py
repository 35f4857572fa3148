"""The result of `check`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..quotients import Mode, Verdict
from ._shown import Shown

if TYPE_CHECKING:
    from rich.console import Group


@dataclass(frozen=True)
class Finding:
    """A derivative of one leaf of the results by one leaf of the arguments, along random directions.

    argument, result: names such as `params['w']` and `result['loss']`.
    derivative: <u, Jv> of the JVP, or <J'u, v> of the VJP. quotient: what the difference quotients tend to,
        up to `uncertainty`; None where they tend to nothing.
    nearby: checked near the point, since the function has no derivative at the point itself.
    """

    argument: str
    result: str
    mode: Mode
    state: Verdict
    derivative: float
    quotient: float | None
    uncertainty: float
    nearby: bool = False

    def __str__(self) -> str:
        what = f"{self.mode} of {self.result} by {self.argument}"
        where = " near the point" if self.nearby else ""
        if self.state == "unclear":
            return f"{what} is not checked{where}: its difference quotients do not settle"
        quotient = "-" if self.quotient is None else f"{self.quotient:.6g}"
        return f"{what} is {self.state}{where}: {self.derivative:.6g}, by difference quotients {quotient}"


@dataclass(frozen=True, repr=False)
class Check(Shown):
    """What `check` found. Prints as a table of what is not right; `ok` is what tests ask.

    precision: "float64", or "as given" where the function does not run in float64. rtol: what was allowed.
    findings: one for each leaf of the arguments, leaf of the results, and mode.
    rules: the lines of the rules that are to blame, such as `model.py:12 (backward)`.
    """

    function: str
    arguments: str
    precision: str
    rtol: float
    findings: tuple[Finding, ...]
    rules: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong, and something is right."""
        return not self.wrong and any(f.state == "right" for f in self.findings)

    @property
    def wrong(self) -> tuple[Finding, ...]:
        return tuple(f for f in self.findings if f.state == "wrong")

    def __repr__(self) -> str:
        return f"<Check of {self.function}({self.arguments}): {self._summary()}>"

    def _summary(self) -> str:
        counts = {
            state: sum(f.state == state for f in self.findings) for state in ("right", "wrong", "unclear")
        }
        return ", ".join(f"{n} {state}" for state, n in counts.items() if n)

    def __rich__(self) -> Group:
        from ._check_table import table

        return table(self)
