"""Whether a number is the slope of a function at 0, judged by difference quotients alone.

Steps are a geometric sequence. The quotient that is believed is the one that its neighbours and all smaller
steps confirm, as far as the function's own noise lets them; what they leave open is its uncertainty. So
rounding, kinks nearby, jumps and high frequencies make a quotient uncertain, not the derivative wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

import jax.numpy as jnp
import numpy as np

Verdict = Literal["right", "wrong", "unclear"]
Mode = Literal["JVP", "VJP"]

_STEPS = tuple(2.0**-k for k in range(3, 28, 2))
_TINY = tuple(2.0**-30 * k for k in (-4, -3, -2, -1, 1, 2, 3, 4))
"""At these the function is as good as a cubic polynomial, so that what it is not is noise."""

_ALLOWED = ((1e-15, 1e-5), (1e-6, 1e-2), (1.0, 0.1))

OF_DISTRIBUTIONS = frozenset({"random_gamma"})
"""Primitives whose derivatives are of what they are drawn from, not of the number that is drawn."""

_SAFETY = 20.0
"""How far beyond its uncertainty a quotient may be off: the uncertainty is an estimate."""


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Of several: one that is wrong counts before one that is unclear."""
    given = set(verdicts)
    return next((v for v in ("wrong", "unclear", "right") if v in given), "unclear")


def allowed_error(epsilon: float) -> float:
    """The relative error of a derivative that is no mistake, by the unit roundoff of the inputs."""
    return next(allowed for bound, allowed in _ALLOWED if epsilon <= bound)


@dataclass(frozen=True)
class Slope:
    """slope: what the quotients tend to, None where they tend to nothing. uncertainty: of the slope.

    kink: the quotients of the two sides stay apart as the steps get smaller.
    resolved: a function with a slope beyond this may have changed its direction within the smallest step.
    largest: the magnitude of the quotients of either side.
    """

    slope: float | None
    uncertainty: float = math.inf
    kink: bool = False
    resolved: float = math.inf
    largest: float = 0.0

    def judge(self, derivative: float, size: float, rtol: float) -> Verdict:
        """Whether `derivative` is this slope, up to `rtol` of `size`, the magnitude of the terms of either.

        At a kink any number may be called the derivative.
        """
        if self.slope is None:
            return "unclear"
        if not math.isfinite(derivative):  # where terms are NaN, quotients alone have a size
            settled = self.uncertainty <= rtol * max(size, self.largest)
            return "wrong" if settled and not self.kink else "unclear"
        whole = max(size, abs(derivative), abs(self.slope))
        difference, allowed = abs(derivative - self.slope), _SAFETY * self.uncertainty
        if difference > max(rtol * whole, allowed):
            return "unclear" if self.kink or abs(derivative) > self.resolved else "wrong"
        return "unclear" if allowed > 0.3 * whole and whole > 0 else "right"


def slope(along: Callable[[float], float], scale: float, rounding: float) -> Slope:
    """The slope of `along` at 0.

    scale: the largest step would be of this size. rounding: of a value of `along`, in absolute terms.
    """
    with np.errstate(all="ignore"):
        start = along(0.0)
        rough = _roughness(along, start, scale)
        noise = max(rounding, rough)
        least = scale * _TINY[-1]
        explained = 100 * max(rounding, 2.0**-52 * abs(along(least) - start))
        resolved = 0.1 * rough / least if rough > explained else math.inf
        ahead: list[float] = []
        behind: list[float] = []
        steps: list[float] = []
        for step in _STEPS:
            a, b = along(scale * step), along(-scale * step)
            if math.isfinite(a) and math.isfinite(b):
                steps.append(scale * step)
                ahead.append((a - start) / steps[-1])
                behind.append((start - b) / steps[-1])
    if len(steps) < 3:
        return Slope(None)
    h, forward, backward = np.array(steps), np.array(ahead), np.array(behind)
    central, blurred = (forward + backward) / 2, noise / h
    doubts = [_doubt(central, blurred, k) for k in range(1, len(h))]
    best = int(np.argmin(doubts)) + 1
    kink = _stays_apart(np.abs(forward - backward), blurred)
    largest = float(np.abs([forward, backward]).max())
    return Slope(float(central[best]), float(doubts[best - 1]), kink, resolved, largest)


@dataclass(frozen=True)
class Judgement:
    """Of one mode's derivative of one result by one array, both along a direction."""

    mode: Mode
    derivative: float
    slope: Slope
    verdict: Verdict


@dataclass(frozen=True)
class Direction:
    """One array of a function's arguments, moved along a tangent.

    scale: the magnitude of its elements. change: the results' differences after a step, an array each.
    epsilon: the unit roundoff of results. rtol: what a derivative may be off.
    """

    tangent: np.ndarray
    scale: float
    change: Callable[[float], list[np.ndarray]]
    epsilon: float
    rtol: float

    def judge(
        self,
        k: int,
        value: np.ndarray,
        cotangent: np.ndarray,
        pushed: np.ndarray | None,
        pulled: np.ndarray | None,
    ) -> list[Judgement]:
        """The derivatives of result k paired with a cotangent, which is 0 where the result is not finite.

        value: the result. pushed: the result's tangent by forward mode.
        pulled: the array's cotangent by reverse mode.
        """
        finite = np.isfinite(value)
        u = cotangent[finite]
        terms: dict[Mode, np.ndarray] = {}
        if pushed is not None:
            terms["JVP"] = u * pushed[finite]
        if pulled is not None:
            terms["VJP"] = pulled * self.tangent
        size = max(finite_norm([t]) for t in terms.values())
        rounding = self.epsilon * (finite_norm([u * value[finite]]) + self.scale * size)
        found = slope(lambda h: float(np.sum((u * self.change(h)[k][finite]).real)), self.scale, rounding)
        judgements = []
        for mode, products in terms.items():
            with np.errstate(invalid="ignore"):  # infinite terms of both signs
                derivative = float(np.sum(products.real))
            verdict = found.judge(derivative, size, self.rtol)
            if not finite.all() and not (finite.any() and np.isfinite(derivative)):  # as the result is NaN
                verdict = "unclear"
            judgements.append(Judgement(mode, derivative, found, verdict))
        return judgements


def finite_cotangent(cotangent: np.ndarray, value: np.ndarray) -> np.ndarray:
    """The cotangent of a result with 0 where the result is not finite."""
    return np.where(np.isfinite(value), cotangent, 0).astype(cotangent.dtype)


def finite_norm(arrays: Iterable[np.ndarray]) -> float:
    """Of the elements that are finite, of all arrays together."""
    finite = (np.where(np.isfinite(a), a, 0) for a in arrays)
    with np.errstate(over="ignore"):
        return math.sqrt(sum(float(np.sum(np.abs(a) ** 2)) for a in finite))


def magnitude(x: np.ndarray) -> float:
    """Of an array's elements, the root of their mean square; 1 where it is zero or not finite."""
    with np.errstate(over="ignore"):
        size = float(np.linalg.norm(x.ravel())) / max(1, x.size) ** 0.5
    return size if size and math.isfinite(size) else 1.0


def widened(array: Any) -> np.ndarray:
    """The same numbers as float64 or complex128; integers and bools as they are."""
    array = np.asarray(array)
    if not jnp.issubdtype(array.dtype, jnp.inexact):
        return array
    return array.astype(np.complex128 if jnp.issubdtype(array.dtype, jnp.complexfloating) else np.float64)


def normal(rng: np.random.Generator, like: Any) -> np.ndarray:
    """Random numbers of an array's shape, in double precision, complex where it is."""
    x = rng.standard_normal(like.shape)
    is_complex = jnp.issubdtype(like.dtype, jnp.complexfloating)
    return x + 1j * rng.standard_normal(like.shape) if is_complex else x


def _roughness(along: Callable[[float], float], start: float, scale: float) -> float:
    """The largest distance of values at tiny steps from a cubic polynomial."""
    steps = np.array([0.0, *_TINY]) * scale
    values = np.array([start, *(along(float(h)) for h in steps[1:])])
    if not np.isfinite(values).all():
        return 0.0
    moved = values - start
    places = np.arange(len(steps)) - len(steps) // 2
    moved = moved[np.argsort(steps)]
    return float(np.abs(moved - np.polyval(np.polyfit(places, moved, 3), places)).max())


def _doubt(central: np.ndarray, blurred: np.ndarray, k: int) -> float:
    """What the larger step before, all smaller steps and rounding leave open of quotient k."""
    contradiction = np.abs(central[k + 1 :] - central[k]) - 4 * blurred[k + 1 :]
    return float(abs(central[k] - central[k - 1]) + blurred[k] + contradiction.max(initial=0.0))


def _stays_apart(gaps: np.ndarray, blurred: np.ndarray) -> bool:
    """Whether the gap between the two sides' quotients, of order h for a smooth function, does not fall."""
    clear = gaps[gaps > 10 * blurred]
    return len(clear) >= 2 and bool(clear[-1] > 0.5 * clear[-2])
