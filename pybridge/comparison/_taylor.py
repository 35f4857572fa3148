"""Derivatives against differences of the function: a check that shares nothing with any engine.

For a smooth f and its derivative, r(h) = |f(x + hv) - f(x) - h Jv| falls as h^2; with a wrong Jv it falls
as h. No single step shows this, so h sweeps over many, and the order is the slope of log r over log h.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ._numbers import norm, pairing, ratio
from ._rows import Taylor

Wide = Sequence[np.ndarray]

_HALVINGS = range(2, 25, 2)
_POINTS = 5  # the order is fitted to so many of the smallest steps that stand out from rounding
_CLEAR = 30.0  # by this factor
_UNIT = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Directional:
    """A derivative along v: an array for each result. `noise` is how far rounding may have moved it."""

    derivative: Wide
    noise: float


@dataclass(frozen=True)
class Curvature:
    """<v, Hv>, as `Directional` is a first derivative."""

    value: float
    noise: float


@dataclass(frozen=True)
class Sweep:
    """orders: by the names that the derivatives were given. central: the best relative error of the
    reference.
    """

    orders: Mapping[str, Taylor]
    central: float | None


def sweep(
    along: Callable[[float], Wide],
    scale: float,
    cotangents: Wide,
    jvps: Mapping[str, Directional],
    vjps: Mapping[str, Directional],
    reference: Wide | None,
) -> Sweep:
    """The Taylor order of each derivative.

    scale: the largest step's size, about that of the point over that of the direction.
    jvps: Jv. vjps: <J'u, v>, as one number, to be held against <u, f(x + hv)>.
    """
    start = along(0.0)
    kept = [np.isfinite(y) for y in start]
    value, u = _masked(start, kept), _masked(cotangents, kept)
    floor, scalar_floor = _UNIT * norm(value), _UNIT * norm([a * b for a, b in zip(u, value, strict=True)])
    remainders: dict[str, list[tuple[float, float, float]]] = {name: [] for name in (*jvps, *vjps)}
    central: list[float] = []
    for h in steps(scale):
        ahead, behind = _masked(along(h), kept), _masked(along(-h), kept)
        change = [a - b for a, b in zip(ahead, value, strict=True)]
        for name, d in jvps.items():
            r = norm([c - h * t for c, t in zip(change, _masked(d.derivative, kept), strict=True)])
            remainders[name].append((h, r, floor + h * d.noise))
        for name, d in vjps.items():
            r = abs(pairing(u, change) - h * float(d.derivative[0]))
            remainders[name].append((h, r, scalar_floor + h * d.noise))
        if reference is not None:
            central.append(_central(ahead, behind, h, _masked(reference, kept)))
    best = [e for e in central if np.isfinite(e)]
    return Sweep({name: _fitted(points) for name, points in remainders.items()}, min(best, default=None))


def steps(scale: float) -> Iterator[float]:
    """From the largest down."""
    return (scale * 0.5**k for k in _HALVINGS)


def curvature_orders(
    along: Callable[[float], Wide],
    scale: float,
    cotangents: Wide,
    gradient: float,
    curvatures: Mapping[str, Curvature],
) -> dict[str, Taylor]:
    """How |F(x + hv) - F(x) - h <g, v> - h^2/2 <v, Hv>| falls with h, F being <u, f>; 3 is right.

    gradient: <g, v>.
    """
    start = along(0.0)
    kept = [np.isfinite(y) for y in start]
    value, u = _masked(start, kept), _masked(cotangents, kept)
    floor = _UNIT * norm([a * b for a, b in zip(u, value, strict=True)])
    points: dict[str, list[tuple[float, float, float]]] = {name: [] for name in curvatures}
    for h in steps(scale):
        change = [a - b for a, b in zip(_masked(along(h), kept), value, strict=True)]
        first = pairing(u, change) - h * gradient
        for name, c in curvatures.items():
            rounding = floor + h * _UNIT * abs(gradient) + h * h / 2 * c.noise
            points[name].append((h, abs(first - h * h / 2 * c.value), rounding))
    return {name: _fitted(found) for name, found in points.items()}


def _central(ahead: Wide, behind: Wide, h: float, reference: Wide) -> float:
    difference = [(a - b) / (2 * h) - t for a, b, t in zip(ahead, behind, reference, strict=True)]
    return ratio(norm(difference), norm(reference))


def _fitted(points: Sequence[tuple[float, float, float]]) -> Taylor:
    """points: steps, remainders, and how large rounding alone would make these."""
    finite = [(h, r, floor) for h, r, floor in points if np.isfinite(r)]
    clear = [(h, r) for h, r, floor in finite if r > _CLEAR * floor]
    if len(clear) < 3:
        return Taylor(None, len(clear), exact=bool(finite) and not clear)
    sizes, values = np.log(np.array(clear[-_POINTS:])).T
    return Taylor(float(np.polyfit(sizes, values, 1)[0]), len(sizes))


def _masked(arrays: Wide, kept: Sequence[np.ndarray]) -> Wide:
    """The elements where the function itself is finite."""
    return [a[m] for a, m in zip(arrays, kept, strict=True)]
