"""Both languages agree on each primitive: Julia runs its Program to the same results.

In a dtype of one of the kinds that it has, real, complex, signed or unsigned integers, or bools, in which
primitives take turns, or in all where everything is tested.
Cases at full width, which tests/derivatives/test_cases.py runs in Julia too, are not repeated. It has Julia
read, check and print all.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import numpy as np
import pytest
from casekit import Case, batches, computed
from cases import CASES, COVERED
from covering import FULL as EVERYTHING
from covering import cover
from neighbours import neighbours

from pybridge.frontend.tracing import trace
from pybridge.ir.types import TensorType
from pybridge.runtime import evaluation

# Units in the last place by which a sum or a special function may differ between two libraries, generously.
TOLERANCE = {"f64": 1e-12, "c128": 1e-12, "f16": 3e-2, "bf16": 3e-2}

_REPEATED = {case.name for case in COVERED if not case.dtype.startswith("c")}
_ONE_EACH = {(case.op, case.dtype): case for case in reversed(CASES) if case.name not in _REPEATED}


def _of_kinds() -> list[Case]:
    """Of each primitive a case of one kind."""
    kinds: dict[tuple[str, str], list[Case]] = {}
    for case in reversed(_ONE_EACH.values()):
        kinds.setdefault((case.op, case.dtype.removeprefix("b")[0]), []).append(case)
    return [kinds[pair][turn % len(kinds[pair])] for turn, pair in enumerate(cover(kinds))]


_BATCHES = batches(list(reversed(_ONE_EACH.values())) if EVERYTHING else _of_kinds())
_NEIGHBOURS = neighbours(_BATCHES["argvalues"])


@functools.cache
def _expected(cases: tuple[Case, ...]) -> dict[str, Any]:
    """What JAX computes for each case."""
    with cases[0].context():
        values = computed([case.f for case in cases], [case.inputs() for case in cases])
    return {case.name: value for case, value in zip(cases, values, strict=True)}


@pytest.mark.parametrize("cases", **_BATCHES)
def test_julia_computes_the_same(cases):
    expected = _expected(_NEIGHBOURS[cases[0].name])
    with cases[0].context():
        for case in cases:
            values, args = expected[case.name], case.inputs()
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
