"""Every primitive of docs/program.md and a collection of Programs, as `Case`s: the rows of all harnesses.

A harness is `@pytest.mark.parametrize("cases", **BATCHES)`; inside `with cases[0].context():` it traces each
case's f at its inputs().
"""

from __future__ import annotations

from dataclasses import replace

import cases_arrays
import cases_control
import cases_elementwise
import cases_linalg
import cases_random
import cases_reductions
import cases_solvers
import cases_windows
from casekit import Case, batches
from covering import FULL as EVERYTHING
from covering import cover, in_turn

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


def family(case: Case) -> str:
    """The name that a case has in common with those of other dtypes."""
    name, *dtype_and_number = case.name.split("/")
    return "/".join([name, *dtype_and_number[1:]])


DIFFERENTIABLE: list[Case] = [case for case in CASES if case.active]

_FAMILIES: dict[str, list[Case]] = {}
for case in CASES:
    _FAMILIES.setdefault(family(case), []).append(case)

BATCHES = batches(in_turn(_FAMILIES.values(), 2))
"""Each family in two dtypes, in which they take turns, or in all where everything is tested."""

# Of each family one case of a kind is enough here: signed integers are all alike, and so are floats.
_WIDER = {"f32": "f64", "f16": None, "bf16": None, "c64": "c128"}
_KINDS = {"i8": "signed", "i16": "signed", "i32": "signed", "i64": "signed"}
_KINDS |= {"u8": "unsigned", "u16": "unsigned", "u32": "unsigned", "u64": "unsigned"}


def _at_full_width() -> list[Case]:
    """Each family in float64, in complex128 if it has complex members, and once a kind of integer."""
    chosen: dict[tuple[str, str], Case] = {}
    for case in CASES:
        dtype = _WIDER.get(case.dtype, case.dtype)
        if dtype is not None:
            wide = case if case.dtype == dtype else replace(case, dtype=dtype, name=f"{family(case)}/{dtype}")
            chosen.setdefault((family(case), _KINDS.get(dtype, dtype)), wide)
    return list(chosen.values())


FULL: list[Case] = _at_full_width()

# Primitives that differ in how elements are combined, not in where they are.
_ALIKE = {f"scatter_{name}": "scatter_add" for name in ("sub", "mul", "min", "max")}
_ALIKE |= {f"reduce_window_{name}": "reduce_window_sum" for name in ("min", "max")}


def _covered() -> list[Case]:
    """Of FULL, for primitives that are alike, each of them, each way to use one and each kind of number.

    Of what has no derivative one case a primitive: other tests have the values of all.
    """
    chosen = {case.op: case.name for case in FULL if not case.active}.values()
    groups: dict[str, dict[tuple, str]] = {}
    for case in filter(lambda case: case.active, FULL):
        group = groups.setdefault(_ALIKE.get(case.op, case.op), {})
        group[family(case).removeprefix(case.op), (case.op, case.dtype)] = case.name
    covers = [group[pair] for group in groups.values() for pair in cover(group)]
    return [case for case in FULL if case.name in {*chosen, *covers}]


COVERED: list[Case] = FULL if EVERYTHING else _covered()
"""What `make test` has of FULL where each case takes long, and `make test-all` all."""


def by_op(op: str) -> list[Case]:
    """The cases about one primitive."""
    return [case for case in CASES if case.op == op]
