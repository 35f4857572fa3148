"""What a comparison says of one engine. Everything here is data and goes into JSON as it stands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["agrees", "disagrees", "failed", "unavailable"]


@dataclass(frozen=True)
class Error:
    """The largest difference from the reference.

    absolute: over all elements that are finite in both.
    relative: for each array the largest difference over the largest magnitude; the worst array counts.
    misplaced: elements that are NaN or infinite here or in the reference, but not alike in both.
    nonfinite: elements that are NaN or infinite here.
    """

    absolute: float
    relative: float
    misplaced: int = 0
    nonfinite: int = 0


@dataclass(frozen=True)
class Taylor:
    """How fast |f(x + hv) - f(x) - h Jv| falls with h: as h^order, 2 if Jv is right and 1 if it is wrong.

    order: None where too few steps stand out from rounding.
    points: how many steps the order was fitted to.
    exact: the remainder is lost in rounding at every step, as for a linear function's right derivative.
    """

    order: float | None
    points: int = 0
    exact: bool = False

    def __str__(self) -> str:
        if self.order is not None:
            return f"{self.order:.2f}"
        return "exact" if self.exact else "-"


@dataclass(frozen=True)
class Times:
    """Median seconds of a call, and their ratio to those of engine `jax`, measured in turns with it."""

    value: float | None
    value_ratio: float | None
    vjp: float | None
    vjp_ratio: float | None


@dataclass(frozen=True)
class Row:
    """One engine. What could not be had is None, and `reasons` says why, one entry for each failure.

    adjoint: |<u, Jv> - <J'u, v>|, relative.
    taylor_jvp, taylor_vjp: the same test of the JVP, and of <u, f(x + hv)> with the VJP.
    equations: in the derivative Program, or in the jaxpr of JAX's VJP, nested ones included.
    first_gradient: seconds from the function to its first VJP: tracing, deriving, compiling, running.
    isolated: measured in a process of its own.
    """

    engine: str
    state: State
    reasons: tuple[str, ...] = ()
    value: Error | None = None
    jvp: Error | None = None
    vjp: Error | None = None
    adjoint: float | None = None
    taylor_jvp: Taylor | None = None
    taylor_vjp: Taylor | None = None
    equations: int | None = None
    first_gradient: float | None = None
    times: Times | None = None
    isolated: bool = False

    @property
    def ran(self) -> bool:
        """Whether there are numbers to judge."""
        return self.value is not None or self.vjp is not None


@dataclass(frozen=True)
class Reference:
    """What the rows are held against: JAX in float64, checked against finite differences.

    precision: "float64", or the inputs' own where the function cannot be run in float64.
    finite_difference: the relative error of the JVP against central differences, at the best of all steps.
    """

    precision: str
    adjoint: float | None
    finite_difference: float | None
    taylor_jvp: Taylor
    taylor_vjp: Taylor
    notes: tuple[str, ...] = ()


def tolerance(epsilon: float) -> float:
    """The relative error that is put down to rounding: 1e-4 for float32, 1e-9 for float64."""
    for bound, allowed in ((1e-15, 1e-9), (1e-6, 1e-4), (1e-2, 1e-2)):
        if epsilon < bound:
            return allowed
    return 5e-2


def judge(row: Row, baseline: Row, reference: Reference, epsilon: float, rtol: float | None = None) -> State:
    """Whether a row agrees with the reference.

    An error counts as rounding up to `rtol` (`tolerance` by default), or ten times what JAX itself makes
    at the same precision: some functions magnify rounding.
    """
    if not row.ran:
        return row.state
    allowed = tolerance(epsilon) if rtol is None else rtol
    pairs = ((row.value, baseline.value), (row.jvp, baseline.jvp), (row.vjp, baseline.vjp))
    fine = all(mine is None or _within(mine, theirs, allowed, epsilon) for mine, theirs in pairs)
    if row.adjoint is not None:
        fine &= row.adjoint <= max(allowed, 10 * (baseline.adjoint or 0.0))
    if rtol is None:  # the remainder shows far smaller errors than whoever gives a tolerance cares for
        taylors = ((row.taylor_jvp, reference.taylor_jvp), (row.taylor_vjp, reference.taylor_vjp))
        fine &= not any(_falls_behind(mine, theirs) for mine, theirs in taylors)
    if not fine:
        return "disagrees"
    return "failed" if row.state == "failed" else "agrees"


def _within(mine: Error, theirs: Error | None, rtol: float, epsilon: float) -> bool:
    if mine.misplaced > (theirs.misplaced if theirs else 0):
        return False
    relative = max(rtol, 10 * theirs.relative) if theirs else rtol
    return mine.relative <= relative or mine.absolute <= 8 * epsilon  # directions are of order 1


def _falls_behind(mine: Taylor | None, theirs: Taylor) -> bool:
    """A derivative of order 1 where the reference's is of order 2; a discontinuous function has neither."""
    if mine is None or mine.order is None:
        return False
    return mine.order < 1.5 and (theirs.exact or (theirs.order is not None and theirs.order > 1.5))
