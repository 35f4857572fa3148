"""Both languages agree on each primitive in each dtype: Julia runs its Program to the same results.

Cases at full width, which tests/derivatives/test_cases.py runs in Julia too, are not repeated. It has
Julia read, check and print all.
"""

from __future__ import annotations

import jax
import numpy as np
import pytest
from casekit import batches, computed
from cases import CASES, FULL

from pybridge.frontend.tracing import trace
from pybridge.ir.types import TensorType
from pybridge.runtime import evaluation

# Units in the last place by which a sum or a special function may differ between two libraries, generously.
TOLERANCE = {"f64": 1e-12, "c128": 1e-12, "f16": 3e-2, "bf16": 3e-2}

_REPEATED = {case.name for case in FULL if not case.dtype.startswith("c")}
_ONE_EACH = {(case.op, case.dtype): case for case in reversed(CASES) if case.name not in _REPEATED}


@pytest.mark.parametrize("cases", **batches(list(reversed(_ONE_EACH.values()))))
def test_julia_computes_the_same(cases):
    with cases[0].context():
        expected = computed([case.f for case in cases], [case.inputs() for case in cases])
        for case, values in zip(cases, expected, strict=True):
            args = case.inputs()
            program = trace(case.f)(*args)
            found = evaluation.evaluate(program, *args)
            for x, y, type_ in zip(jax.tree.leaves(values), found, program.output_types, strict=True):
                _assert_close(np.asarray(x), y, type_, str(case))
            for given, original in zip(args, case.inputs(), strict=True):
                assert given.tobytes() == original.tobytes(), f"{case}: an input was changed"


def _assert_close(x: np.ndarray, y: np.ndarray, type_: TensorType, name: str) -> None:
    assert (x.dtype, x.shape) == (y.dtype, y.shape), name
    tolerance = TOLERANCE.get(type_.dtype, 2e-5) if type_.inexact else 0
    kind = np.complex128 if type_.inexact else x.dtype
    np.testing.assert_allclose(y.astype(kind), x.astype(kind), tolerance, tolerance, err_msg=name)
