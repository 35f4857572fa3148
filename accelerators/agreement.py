"""How far results are from what is right. Needs NumPy alone."""

from __future__ import annotations

from typing import Any

import numpy as np


def error(found: list[Any], right: list[np.ndarray], least: float) -> float:
    """The worst leaf's, relative to its largest number, or to `least` where all are smaller.

    Infinite where shapes differ, or which elements are finite.
    """
    if len(found) != len(right):
        return float("inf")
    return max((_leaf_error(np.asarray(x), y, least) for x, y in zip(found, right, strict=True)), default=0.0)


def _leaf_error(x: np.ndarray, y: np.ndarray, least: float) -> float:
    wide = np.complex128 if y.dtype.kind == "c" else np.float64
    x, y = x.astype(wide), y.astype(wide)
    finite = np.isfinite(y)
    if x.shape != y.shape or not np.array_equal(np.isfinite(x), finite):
        return float("inf")
    x, y = x[finite], y[finite]
    worst, largest = (np.max(np.abs(z), initial=0.0) for z in (x - y, y))
    return float(worst / max(largest, least))
