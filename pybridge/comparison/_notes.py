"""What is said under a comparison's table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.text import Text

from ..quantities import MISSING
from ._rows import SecondReference

if TYPE_CHECKING:
    from ._comparison import Comparison

COLOURS = {"agrees": "green", "disagrees": "bold red", "failed": "yellow", "unavailable": "dim"}
"""Of the states of rows."""


def notes(comparison: Comparison) -> Iterator[Text]:
    r = comparison.reference
    difference = MISSING if r.finite_difference is None else f"{r.finite_difference:.1e}"
    yield from _verdicts(comparison)
    yield Text(
        "Errors: largest absolute, largest relative, and in units of the condition κ times the unit roundoff "
        f"ε, against JAX in {r.precision}. That reference itself: "
        f"{difference} off central differences, Taylor order {r.taylor_jvp} (JVP) and {r.taylor_vjp} (VJP); "
        "2 is right."
    )
    if r.second is not None:
        yield from _second_notes(comparison, r.second)
    for row in comparison.rows:
        state = (f"{row.engine} {row.state}", COLOURS[row.state])
        for reason in row.disagreements:
            yield Text.assemble(state, f": {reason}")
        for reason in row.reasons:
            told = (
                row.engine if row.ran and not row.failed else (f"{row.engine} failed" if row.ran else state)
            )
            yield Text.assemble(told, f": {reason}")
    for row in comparison.rows:
        if row.isolated:
            yield Text(
                f"{row.engine} ran in a process of its own; its times are compared with those of jax there."
            )
    yield from (Text(f"Note: {note}.") for note in _remarks(comparison))
    if comparison.machine:
        yield Text(", ".join(f"{key} {value}" for key, value in comparison.machine.items()), style="dim")


def _second_notes(comparison: Comparison, second: SecondReference) -> Iterator[Text]:
    if second.note:
        yield Text(f"Second derivative: {second.note}.")
        return
    told, colour = _DERIVATIVE[second.derivative]
    told = told.replace("of its value", "of the first")
    yield Text.assemble("Second derivative: ", (told, colour), ", by difference quotients.")
    difference = MISSING if second.finite_difference is None else f"{second.finite_difference:.1e}"
    yield Text(
        "HVP: forward over reverse (F/R), reverse over forward (R/F), reverse over reverse (R/R). The "
        f"reference: {difference} off central differences of its gradient, Taylor order "
        f"{second.taylor or MISSING}; 3 is right."
    )
    for row in comparison.rows:
        if row.second and row.second.cannot:
            yield Text(f"{row.engine} cannot: {row.second.cannot}.")


_DERIVATIVE = {
    "right": ("that of its value", "green"),
    "wrong": ("not that of its value", "bold red"),
    "unclear": ("not checked, since difference quotients do not settle", "yellow"),
}


def _verdicts(comparison: Comparison) -> Iterator[Text]:
    """Two, which are independent: engines can agree in a derivative that is wrong."""
    agrees = ("agree", "green") if comparison.agrees() else ("do not agree", "bold red")
    yield Text.assemble("Engines: ", agrees, ".")
    yield Text.assemble("Derivative: ", _DERIVATIVE[comparison.derivative], ", by difference quotients.")
    if comparison.derivative == "wrong":
        yield Text(
            "All engines take the function's own rules (stop_gradient, custom_jvp, custom_vjp …); "
            "`pybridge check` names those that are no derivatives."
        )


def _remarks(comparison: Comparison) -> Iterator[str]:
    yield from comparison.reference.notes
    for row in comparison.rows:
        if row.value and row.value.nonfinite:
            yield f"the value of {row.engine} has {row.value.nonfinite} elements that are NaN or infinite"
        yield from (f"{text} of {row.engine} is taken for rounding" for text in row.rounded)
