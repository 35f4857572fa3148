"""When two results agree: to rounding, at the scale of the numbers that took part."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from pybridge.ir.numerals import dtype_name

# What may be lost: some units in the last place, an order more where a function and its derivative are
# computed by different formulas.
TOLERANCES = {"f64": 1e-11, "c128": 1e-11, "f32": 2e-5, "c64": 2e-5, "f16": 2e-2, "bf16": 1e-1}


def assert_agree(
    found: Any, expected: Any, what: str, tolerance: float | None = None, unit: float = 1.0
) -> None:
    """As many leaves, of the same dtypes and shapes, equal up to the tolerance times the largest number.

    To that number `unit` is added, so that numbers far below it may be lost: 0 where they are what is tested.
    Infinities and NaNs stand at the same places. Integers are equal.
    """
    ours, theirs = jax.tree.leaves(found), jax.tree.leaves(expected)
    assert len(ours) == len(theirs), f"{what}: {len(ours)} results where {len(theirs)} are expected"
    for i, (x, y) in enumerate(zip(ours, theirs, strict=True)):
        x, y = np.asarray(x), np.asarray(y)
        assert (x.dtype, x.shape) == (y.dtype, y.shape), (
            f"{what}[{i}]: {x.dtype}{x.shape}, not {y.dtype}{y.shape}"
        )
        _assert_equal_up_to(x, y, f"{what}[{i}]", tolerance, unit)


def _assert_equal_up_to(
    x: np.ndarray, y: np.ndarray, what: str, tolerance: float | None, unit: float
) -> None:
    name = dtype_name(y.dtype)
    if name not in TOLERANCES:
        np.testing.assert_array_equal(x, y, what)
        return
    wide = np.complex128 if y.dtype.kind == "c" else np.float64
    x, y = x.astype(wide), y.astype(wide)
    finite = np.isfinite(y)
    np.testing.assert_array_equal(np.isfinite(x), finite, what)
    if y.dtype.kind == "f":
        np.testing.assert_array_equal(x[~finite], y[~finite], what)
    scale = unit + np.max(np.abs(y[finite]), initial=0)
    allowed = (TOLERANCES[name] if tolerance is None else tolerance) * scale
    worst = np.max(np.abs(x[finite] - y[finite]), initial=0)
    assert worst <= allowed, f"{what}: off by {worst:.3g}, allowed {allowed:.3g}\nfound    {x}\nexpected {y}"
