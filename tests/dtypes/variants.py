"""The cases of tests/cases.py at every dtype: what a variant is, and its inputs."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace

import cases
import ml_dtypes
import numpy as np
from casekit import Case, Make

from pybridge.fuzz import making
from pybridge.ir.numerals import COMPLEX, DTYPES, is_inexact
from pybridge.ir.schema import OPERATIONS, Operation, names

FOREIGN = {
    "int4": ("i8", np.dtype(ml_dtypes.int4)),
    "uint4": ("u8", np.dtype(ml_dtypes.uint4)),
    "f8e4": ("f16", np.dtype(ml_dtypes.float8_e4m3fn)),
    "f8e5": ("f16", np.dtype(ml_dtypes.float8_e5m2)),
}
"""Dtypes that Programs do not have: the dtype that their inputs are made at, and their own."""

ORDERING = frozenset(
    names(
        """
        reduce_max reduce_min argmax argmin cummax cummin sort top_k reduce_window_max reduce_window_min
        scatter_max scatter_min select_and_gather_add select_and_scatter_add reduce_sum reduce_prod cumsum
        cumprod cumlogsumexp
        """
    )
)
"""Operations other than elementwise ones that get special values, which matter to what they choose or add."""

ENDLESS = making.ENDLESS | {"threefry2x32_gamma"}
"""Operations and families whose loops in XLA, or those of a derivative, do not end at some special values.
The operations' cases have values of their own for the limits of the domain."""


def families(pattern: str = "") -> dict[str, list[Case]]:
    """The cases whose family's name contains the pattern, by family."""
    found: dict[str, list[Case]] = {}
    for case in cases.CASES:
        name = cases.family(case)
        if pattern in name:
            found.setdefault(name, []).append(case)
    return found


def basic(pattern: str = "") -> list[str]:
    """Of each operation the name of its first family."""
    chosen: dict[str, str] = {}
    for name, members in families(pattern).items():
        chosen.setdefault(members[0].op, name)
    return list(chosen.values())


def variant(name: str, members: Sequence[Case], dtype: str) -> Case | None:
    """The family's case at a dtype, by the member that is of the dtype's kind; None where no input has it."""
    made_at, foreign = FOREIGN.get(dtype, (dtype, None))
    like = min(members, key=lambda case: _distance(case.dtype, made_at))
    active = next((case.active for case in members if case.active), ())
    case = replace(like, name=f"{name}/{dtype}", dtype=made_at, active=active if is_inexact(made_at) else ())
    if all(x.dtype != DTYPES[made_at] for x in case.inputs()):
        return None
    if foreign is None:
        return case
    makes = tuple(functools.partial(_cast, make, foreign) for make in case.makes)
    return replace(case, makes=makes, active=active if dtype.startswith("f8") else ())


def _distance(dtype: str, target: str) -> int:
    if dtype == target:
        return 0
    return 1 if dtype[0] == target[0] else 2 if is_inexact(dtype) == is_inexact(target) else 3


def _cast(make: Make, foreign: np.dtype, rng: np.random.Generator, dtype: str) -> np.ndarray:
    x = make(rng, dtype)
    return x.astype(foreign) if x.dtype == DTYPES[dtype] else x


def extended(case: Case) -> list[Case]:
    """The variant, and it at special values and at ties where these are tested."""
    if OPERATIONS.get(case.op, Operation("")).elementwise:
        special = _at_pairs(case)
        return [case] if special is None else [case, special]
    if case.op in ORDERING and case.dtype not in COMPLEX:
        # Derivatives of overflowing sums and of the largest of NaNs are another number in each order of
        # additions, and so by each of XLA's optimisations.
        return [
            case,
            _mixed(replace(case, active=()), special_values(case.dtype), "special"),
            _mixed(case, np.array([0.0, -0.0, 1.0, 2.0]).astype(DTYPES[case.dtype]), "ties"),
        ]
    return [case]


def _places(case: Case) -> list[int]:
    """Which inputs are of the case's dtype."""
    return [i for i, x in enumerate(case.inputs()) if x.dtype == DTYPES[case.dtype]]


def _at_pairs(case: Case) -> Case | None:
    """The elementwise variant at all pairs of special values; None for more operands or of several shapes."""
    inputs, places, values = case.inputs(), _places(case), special_values(case.dtype)
    endless = not ENDLESS.isdisjoint((case.op, case.name.partition("/")[0]))
    if endless or len({x.shape for x in inputs}) > 1 or len(places) > 2:
        return None
    size = len(values) ** len(places)
    arrays = [np.resize(x.ravel(), size) for x in inputs]
    for i, column in zip(places, np.meshgrid(*[values] * len(places), indexing="ij"), strict=True):
        arrays[i] = column.ravel()
    return _with_inputs(case, arrays, "special")


def _mixed(case: Case, values: np.ndarray, name: str) -> Case:
    """The variant at arrays in which these values are mixed."""
    rng, places = case.rng(name), _places(case)
    arrays = [rng.choice(values, x.shape) if i in places else x for i, x in enumerate(case.inputs())]
    return _with_inputs(case, arrays, name)


def _with_inputs(case: Case, arrays: Sequence[np.ndarray], name: str) -> Case:
    makes = tuple(functools.partial(_given, x) for x in arrays)
    return replace(case, name=f"{case.name}/{name}", makes=makes)


def _given(x: np.ndarray, rng: np.random.Generator, dtype: str) -> np.ndarray:
    return x


def special_values(dtype: str) -> np.ndarray:
    """A vector of the values of a dtype at which operations are likeliest to be wrong."""
    target = DTYPES[dtype]
    if dtype == "bool":
        return np.array([False, True])
    if dtype in COMPLEX:
        parts = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -2.5]
        return np.array([complex(re, im) for re in parts for im in parts], target)
    if not is_inexact(dtype):
        info = np.iinfo(target)
        values = {info.min, info.min + 1, info.max, info.max - 1, 0, 1, 2, 3, 7, info.bits - 1, info.bits}
        return np.array(sorted(values | ({-1, -2, -7} if info.min else set())), target)
    info = ml_dtypes.finfo(target)
    small = [info.smallest_subnormal, info.smallest_normal, info.eps]
    magnitudes = [0.0, *map(float, small), 0.5, 1.0, 1.5, 2.0, 2.5, 7.0, float(info.max)]
    return np.array([np.nan, *(s * x for x in [*magnitudes, np.inf] for s in (1, -1))], target)
