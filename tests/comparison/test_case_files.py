"""The files that reproduce what an engine does wrong hold the numbers that it was given."""

from __future__ import annotations

import numpy as np
import pytest

from pybridge.comparison import case_text
from pybridge.ir.numerals import DTYPES
from pybridge.ir.parser import parse

REALS = [0.0, -0.0, 1e-45, -0.1, np.inf, -np.inf, np.nan]
NUMBERS = {
    "b": [True, False],
    "i": [0, 1, -1, -8],
    "u": [0, 1, 15],
    "f": REALS,
    "V": REALS,  # bfloat16
    "c": [complex(re, im) for re in (-1.0, -0.0, np.inf, np.nan) for im in (0.0, -0.0, -np.inf, 0.1)],
}


@pytest.mark.parametrize("dtype", sorted(DTYPES))
def test_arrays_read_back_as_they_were(dtype):
    x = np.asarray(NUMBERS[np.dtype(DTYPES[dtype]).kind]).astype(DTYPES[dtype])
    program = parse(f"pybridge 1\nprogram f(%0: {dtype}[{x.size}]) {{\n  return %0\n}}\n")
    text = case_text("a case", "pybridge.fuzz", "jax", program, {"inputs": [x, x[:1].reshape(())]}, {})
    scope: dict = {"__name__": "a case"}
    exec(text, scope)
    for given, read in zip([x, x[:1].reshape(())], scope["inputs"], strict=True):
        assert read.dtype == given.dtype and read.shape == given.shape
        np.testing.assert_array_equal(_words(read), _words(given))


def _words(x: np.ndarray) -> str:
    """Signs of zeros included; NaN is one."""
    wide = x if x.dtype.kind in "biuc" else x.astype(np.float64)
    return repr(wide.ravel().tolist())
