"""Differences and inner products of lists of arrays, in float64."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ._rows import Error

Wide = Sequence[np.ndarray]


def error(found: Wide, expected: Wide, units: Sequence[float] | None = None) -> Error:
    """NaN and infinity are data: where both have the same one there is no error.

    units: for each array an absolute error, in which the error is told too.
    """
    if [a.shape for a in found] != [b.shape for b in expected]:
        return Error(math.inf, math.inf)
    absolute = relative = 0.0
    misplaced = nonfinite = 0
    in_units = None if units is None else 0.0
    for i, (mine, theirs) in enumerate(zip(found, expected, strict=True)):
        finite = np.isfinite(mine) & np.isfinite(theirs)
        with np.errstate(invalid="ignore"):
            alike = (mine == theirs) | (np.isnan(mine) & np.isnan(theirs))
        misplaced += int(np.sum(~finite & ~alike))
        nonfinite += int(np.sum(~np.isfinite(mine)))
        difference = largest_difference(mine, theirs)
        absolute = max(absolute, difference)
        relative = max(relative, ratio(difference, _largest(np.abs(np.where(finite, theirs, 0)))))
        if units is not None:
            in_units = max(in_units or 0.0, ratio(difference, units[i]))
    return Error(absolute, relative, misplaced, nonfinite, in_units)


def largest_difference(mine: np.ndarray, theirs: np.ndarray) -> float:
    """Of elements that are finite in both."""
    finite = np.isfinite(mine) & np.isfinite(theirs)
    return _largest(np.abs(np.where(finite, mine, 0) - np.where(finite, theirs, 0)))


def largest_finite(values: np.ndarray) -> float:
    """The largest magnitude of an element that is finite."""
    return _largest(np.abs(np.where(np.isfinite(values), values, 0)))


def ratio(difference: float, scale: float) -> float:
    """difference / scale, where nothing over nothing is nothing."""
    if difference == 0:
        return 0.0
    return difference / scale if scale else math.inf


def pairing(u: Wide, v: Wide) -> float:
    """Re sum(u v), without conjugation: so JAX's VJP is the transpose of its JVP, complex ones too."""
    return float(sum(np.sum((a * b).real) for a, b in zip(u, v, strict=True)))


def norm(arrays: Wide) -> float:
    return math.sqrt(sum(float(np.sum(np.abs(a) ** 2)) for a in arrays))


def adjoint_error(u: Wide, jv: Wide, jtu: Wide, v: Wide) -> float | None:
    """|<u, Jv> - <J'u, v>| relative to the larger, or to their terms' size where these cancel.

    None where NaN or infinity is among them.
    """
    left, right = pairing(u, jv), pairing(jtu, v)
    size = norm([a * b for a, b in zip(u, jv, strict=True)])
    difference = abs(left - right)
    return ratio(difference, max(abs(left), abs(right), size)) if math.isfinite(difference) else None


def _largest(values: np.ndarray) -> float:
    return float(np.max(values, initial=0.0))
