"""What a comparison says of one engine. Everything here is data and goes into JSON as it stands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from ..quotients import Verdict
from ._nestings import NESTINGS

State = Literal["agrees", "disagrees", "failed", "unavailable"]


@dataclass(frozen=True)
class Error:
    """The largest difference from the reference.

    absolute: over all elements that are finite in both.
    relative: for each array the largest difference over the largest magnitude; the worst array counts.
    misplaced: elements that are NaN or infinite here or in the reference, but not alike in both.
    nonfinite: elements that are NaN or infinite here.
    units: of the condition times the unit roundoff; the worst array counts. None where it is not known.
    """

    absolute: float
    relative: float
    misplaced: int = 0
    nonfinite: int = 0
    units: float | None = None


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
class Memory:
    """Of a gradient, in bytes. None where it could not be found out.

    residuals: the arrays that `jax.vjp` keeps between the forward and the backward pass, such arguments as
        the backward pass needs included.
    vjp: results and temporary buffers of the compiled VJP, a native kernel's workspace included.
    """

    residuals: int | None
    vjp: int | None


@dataclass(frozen=True)
class Second:
    """Second derivatives: Hv, with H the Hessian of <u, f>, and u and v the comparison's directions.

    errors: by nesting, "forward over reverse" and the like; one that the engine lacks is not there.
    symmetry: |<w, Hv> - <v, Hw>|, relative, with other directions w; of the worst nesting.
    taylor: how |f(x + hv) - f(x) - h <g, v> - h^2/2 <v, Hv>| falls, f being <u, f> and g the reference's
        gradient: as h^3 if Hv is right, h^2 if it is wrong. Of the first nesting that there is.
    cannot: why the engine was not asked for any.
    """

    errors: Mapping[str, Error] = field(default_factory=dict)
    symmetry: float | None = None
    taylor: Taylor | None = None
    cannot: str = ""


@dataclass(frozen=True)
class SecondReference:
    """The same of the reference, JAX in float64. finite_difference: against central differences of its
    gradient, at the best of all steps. derivative: whether it is the derivative of its gradient, by these.
    note: why there is none.
    """

    symmetry: float | None
    finite_difference: float | None
    taylor: Taylor | None
    derivative: Verdict = "unclear"
    note: str = ""


@dataclass(frozen=True)
class Row:
    """One engine. What could not be had is None, and `reasons` says why, one entry for each failure.

    disagreements: what is off, and by how much; the reason where the state is "disagrees".
    rounded: errors beyond the usual that are put down to rounding, since they are small compared with 1, or
        JAX has the like.
    failed: something could not be had that the function has; no JVP of a custom_vjp function is no failure.
    leaves: the errors behind `value`, `jvp` and `vjp` by leaf: of the results, for `vjp` of the arguments;
        and of the nestings of second derivatives.
    second: None where second derivatives were not asked for.
    adjoint: |<u, Jv> - <J'u, v>|, relative.
    taylor_jvp, taylor_vjp: the same test of the JVP, and of <u, f(x + hv)> with the VJP.
    equations: in the derivative Program, or in the jaxpr of JAX's VJP, nested ones included.
    first_gradient: seconds from the function to its first VJP: tracing, deriving, compiling, running.
    memory: None where there is no gradient.
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
    memory: Memory | None = None
    isolated: bool = False
    disagreements: tuple[str, ...] = ()
    rounded: tuple[str, ...] = ()
    failed: bool = False
    leaves: Mapping[str, Mapping[str, Error]] = field(default_factory=dict)
    second: Second | None = None

    @property
    def ran(self) -> bool:
        """Whether there are numbers to judge."""
        return self.value is not None or self.vjp is not None


@dataclass(frozen=True)
class Reference:
    """What the rows are held against: JAX in float64, checked against finite differences.

    precision: "float64", or the inputs' own where the function cannot be run in float64.
    finite_difference: the relative error of the JVP against central differences, at the best of all steps.
    derivative: whether it is the derivative of the value, by difference quotients: what no engine can
        correct, since all take the user's rules.
    by_operation: each operation is compiled for itself, since XLA makes something else of the whole.
    condition: of value, JVP and VJP, by leaf: how much random relative changes of the inputs are magnified,
        at least 1.
    """

    precision: str
    adjoint: float | None
    finite_difference: float | None
    taylor_jvp: Taylor
    taylor_vjp: Taylor
    notes: tuple[str, ...] = ()
    derivative: Verdict = "unclear"
    by_operation: bool = False
    condition: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    second: SecondReference | None = None


def tolerance(epsilon: float) -> float:
    """The relative error that is put down to rounding: 1e-4 for float32, 1e-9 for float64."""
    for bound, allowed in ((1e-15, 1e-9), (1e-6, 1e-4), (1e-2, 1e-2)):
        if epsilon < bound:
            return allowed
    return 5e-2


def judged(row: Row, baseline: Row, reference: Reference, epsilon: float, rtol: float | None = None) -> Row:
    """The row with its state, and what it disagrees in.

    An error counts as rounding up to `rtol`. Without one that is `tolerance`, or ten times what JAX itself
    makes at the same precision, since some functions magnify rounding; and a Taylor order must be the
    reference's.
    """
    if not row.ran:
        return row
    found = [*_errors(row, baseline, epsilon, rtol), *_sides(row, baseline, reference, epsilon, rtol)]
    found += _symmetry(row, baseline, reference, epsilon, rtol)
    if rtol is None:  # the remainder shows far smaller errors than a given tolerance allows
        found += _orders(row, reference)
    state: State = "disagrees" if found else "failed" if row.failed else "agrees"
    large = set(_errors(row, baseline, epsilon, tolerance(epsilon))).difference(found)
    rounded = tuple(sorted(large)) if rtol is None else ()
    return replace(row, state=state, disagreements=tuple(found), rounded=rounded)


def _errors(row: Row, baseline: Row, epsilon: float, rtol: float | None) -> Iterator[str]:
    """The leaves that are off, and by how much."""
    for stage, by_leaf in row.leaves.items():
        theirs = baseline.leaves.get(stage, {})
        for leaf, mine in by_leaf.items():
            what = described(stage, leaf)
            own = theirs.get(leaf, NO_ERROR)
            if mine.misplaced > own.misplaced:
                yield f"{what}: {mine.misplaced} elements are NaN or infinite here or in the reference alone"
            elif is_off(mine, own, epsilon, rtol):
                yield f"{what}: relative error {mine.relative:.1e}"


def described(stage: str, leaf: str) -> str:
    """A leaf of one of a row's `leaves`, in words."""
    return f"{_SHOWN[stage]} {leaf}"


_SHOWN = {"value": "value of", "jvp": "JVP of", "vjp": "VJP by"}
_SHOWN |= {nesting: f"HVP ({nesting}) by" for nesting in NESTINGS}
NO_ERROR = Error(0.0, 0.0)


def is_off(mine: Error, jax: Error, epsilon: float, rtol: float | None, size: float = 1.0) -> bool:
    """Whether an error is beyond what rounding explains.

    jax: JAX's own, at the same precision. size: of the numbers that took part; directions are of order 1.
    """
    if mine.misplaced > jax.misplaced:
        return True
    if rtol is not None:
        return mine.relative > rtol
    rounding = 8 * epsilon * size
    return mine.relative > max(tolerance(epsilon), 10 * jax.relative) and mine.absolute > rounding


def _sides(
    row: Row, baseline: Row, reference: Reference, epsilon: float, rtol: float | None
) -> Iterator[str]:
    """Whether forward and reverse mode belong together, where they do in the reference."""
    allowed = max(tolerance(epsilon), 10 * (baseline.adjoint or 0.0)) if rtol is None else rtol
    if row.adjoint is None or (reference.adjoint or 0.0) > allowed:
        return
    if row.adjoint > allowed:
        yield f"<u,Jv> and <J'u,v> differ by {row.adjoint:.1e}"


def _symmetry(
    row: Row, baseline: Row, reference: Reference, epsilon: float, rtol: float | None
) -> Iterator[str]:
    """Whether the second derivative is symmetric, where that of the reference is."""
    own = baseline.second.symmetry if baseline.second else None
    mine = row.second.symmetry if row.second else None
    theirs = reference.second.symmetry if reference.second else None
    allowed = max(tolerance(epsilon), 10 * (own or 0.0)) if rtol is None else rtol
    if mine is not None and mine > allowed and (theirs or 0.0) <= allowed:
        yield f"<w,Hv> and <v,Hw> differ by {mine:.1e}"


def _orders(row: Row, reference: Reference) -> Iterator[str]:
    """A derivative of order 1 where the reference's is of order 2; a discontinuous function has neither.

    A second derivative of order 2 where the reference's is of order 3.
    """
    pairs = {
        "JVP": (row.taylor_jvp, reference.taylor_jvp, 1.5),
        "VJP": (row.taylor_vjp, reference.taylor_vjp, 1.5),
    }
    if row.second and reference.second and reference.second.taylor:
        pairs["HVP"] = (row.second.taylor, reference.second.taylor, 2.5)
    for mode, (mine, theirs, least) in pairs.items():
        good = theirs.exact or (theirs.order is not None and theirs.order > least)
        if good and mine is not None and mine.order is not None and mine.order < least:
            yield f"{mode}: its Taylor order is {mine}, that of the reference {theirs}"
