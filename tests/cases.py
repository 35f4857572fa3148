"""Every primitive of docs/program.md and a collection of Programs, as `Case`s: the rows of all harnesses.

A harness is `@pytest.mark.parametrize("cases", **BATCHES)`; inside `with cases[0].context():` it traces each
case's f at its inputs().
"""

from __future__ import annotations

import cases_arrays
import cases_control
import cases_elementwise
import cases_linalg
import cases_random
import cases_reductions
import cases_solvers
import cases_windows
from casekit import Case, batches

CASES: list[Case] = [
    *cases_elementwise.CASES,
    *cases_arrays.CASES,
    *cases_reductions.CASES,
    *cases_linalg.CASES,
    *cases_solvers.CASES,
    *cases_random.CASES,
    *cases_windows.CASES,
    *cases_control.CASES,
]

DIFFERENTIABLE: list[Case] = [case for case in CASES if case.active]

BATCHES = batches(CASES)


def by_op(op: str) -> list[Case]:
    """The cases about one primitive."""
    return [case for case in CASES if case.op == op]
