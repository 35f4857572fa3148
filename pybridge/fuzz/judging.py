"""Whether an engine's results are those that are expected, up to what rounding explains."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..ir.widening import widened_array
from .making import Sample
from .reference import SPREAD, Expected
from .stages import STAGES, Arrays, Outcome, Stage

_UNITS = {2.0**-7: 6.0, 2.0**-10: 8.0}
_MOST = 100.0
"""How many times the spread of the reference's runs an error may be: they are a sample, and an engine may
compute by other formulas. In half precisions less, where so many units are the whole number."""
_LEAST = 1.0
"""The size of the numbers that took part, at least: inputs and directions are about one, and results may be
what is left where those cancel."""
_OWN = 5.0
"""How many times JAX's own error an error may be."""

_REFUSALS = re.compile(
    r"NotImplementedError|NotDifferentiable|UnsupportedPrimitive|not implemented|does not support"
    r"|Reverse-mode differentiation does not work|forward-mode|[Dd]ifferentiation rule|no derivative"
    r"|Can't differentiate"
)
"""What JAX says where it has no such derivative, and what an engine may say there."""
_NO_RULE = re.compile(r"UnsupportedPrimitive: \w+: has no derivative")
"""What an engine may say of a VJP where JAX has no JVP: reverse mode takes the rules of forward mode, and JAX
misses none where a tangent turns out not to depend on any."""


@dataclass(frozen=True)
class Failure:
    """kind: value, jvp, vjp (a wrong result), raises, crash, hang, doubt. stage: where. detail: in words."""

    kind: str
    stage: Stage
    detail: str


def judge(sample: Sample, wanted: Expected, found: Outcome, own: Outcome | None) -> Failure | None:
    """own: what JAX itself gave in the Program's precision, None where that is what is judged.

    Where JAX's derivative is not that of the value, a failure to give the same is of the kind "doubt".
    """
    failure = _failure(sample, wanted, found, own)
    if failure is None or not wanted.doubt or failure.kind not in ("jvp", "vjp"):
        return failure
    return Failure("doubt", failure.stage, f"{wanted.doubt} in JAX; {failure.detail}")


def _failure(sample: Sample, wanted: Expected, found: Outcome, own: Outcome | None) -> Failure | None:
    if found.end:
        kind = "hang" if "within" in found.end else "crash"
        return Failure(kind, found.ended_in, found.end)
    for stage in STAGES:
        if stage in found.failures:
            told = found.failures[stage]
            if stage not in wanted.runs and _REFUSALS.search(told):
                continue
            if stage == "vjp" and "jvp" not in wanted.runs and _NO_RULE.match(told):
                continue
            if stage in wanted.runs and (own is None or stage in own.results):
                return Failure("raises", stage, told)
            if own is None and not _REFUSALS.search(told):
                return Failure("raises", stage, told)
        elif stage in wanted.runs:
            theirs = None if own is None else own.results.get(stage)
            off = _off(found.results[stage], wanted, stage, theirs)
            if off:
                return Failure(stage, stage, off)
        elif stage == "vjp" and "jvp" in wanted.runs and "jvp" in found.results:
            off = _off_adjoint(sample, wanted, found)
            if off:
                return Failure("vjp", stage, off)
    return None


def _off(found: Arrays, wanted: Expected, stage: Stage, own: Arrays | None) -> str:
    """What is wrong with the results, if anything is. Of NaN there is no right order, and so no integers."""
    for i, array in enumerate(found):
        expected = [np.asarray(r[i]) for r in wanted.runs[stage]]
        if array.dtype.kind in "biu" and not wanted.finite:
            continue
        if array.shape != expected[0].shape:
            return f"result {i} has the shape {array.shape}, not {expected[0].shape}"
        theirs = None if own is None else own[i]
        off = (_off_exact if array.dtype.kind in "biu" else _off_inexact)(
            array, expected, theirs, wanted.epsilon
        )
        if off:
            return f"result {i}: {off}"
    return ""


def _off_exact(array: np.ndarray, runs: Sequence[np.ndarray], own: np.ndarray | None, _: float) -> str:
    sure = np.all([r == runs[0] for r in runs], axis=0)
    if own is not None:
        sure &= own == runs[0]
    wrong = sure & (array != runs[0])
    return f"{int(wrong.sum())} of {wrong.size} integers differ" if wrong.any() else ""


def _off_inexact(array: np.ndarray, runs: Sequence[np.ndarray], own: np.ndarray | None, eps: float) -> str:
    limits = _limits(array.dtype)
    reference, mine = runs[0], widened_array(array)
    with np.errstate(all="ignore"):
        sure = np.all([np.isfinite(r) & (np.abs(r) < limits.large) for r in runs], axis=0)
        if own is not None:
            sure &= np.isfinite(own)
        if not sure.any():
            return ""
        if eps < 1e-6 and not np.isfinite(mine[sure]).all():
            return "NaN or infinity where the value is finite"
        sure &= np.isfinite(mine)
        scale = _largest(reference[sure])
        spread = max(_largest((r - reference)[sure]) for r in runs[:SPREAD])
        allowed = _UNITS.get(eps, _MOST) * (spread + eps * max(scale, _LEAST)) + 1e3 * limits.tiny
        if own is not None:
            allowed += _OWN * _largest((widened_array(own) - reference)[sure])
        error = _largest((mine - reference)[sure])
    if error <= allowed:
        return ""
    return f"off by {error:.2g} where rounding explains {allowed:.2g} and values are up to {scale:.2g}"


def _off_adjoint(sample: Sample, wanted: Expected, found: Outcome) -> str:
    """Where JAX has no reverse mode: <u, Jv> is what the engine's <J'u, v> should be."""
    u, v = ([widened_array(a) for a in arrays] for arrays in (sample.cotangents, sample.tangents))
    terms = [a * b for a, b in zip(u, wanted.runs["jvp"][0], strict=True)]
    sums = [np.array([_pairing(u, jv)]) for jv in wanted.runs["jvp"]]
    mine = np.array([_pairing([widened_array(a) for a in found.results["vjp"]], v)])
    size = sum(float(np.abs(t).sum()) for t in terms)
    own = sums[0] + _tangents_roundoff(sample, wanted) * size  # as large an error as that is rounding
    return _off_inexact(mine, sums, own, wanted.epsilon)


def _tangents_roundoff(sample: Sample, wanted: Expected) -> float:
    """That of the dtypes, or of a `reduce_precision`, which rounds tangents and cotangents too."""
    bits = (eq.attrs["mantissa_bits"] for eq in sample.program.all_equations() if eq.op == "reduce_precision")
    return max([wanted.epsilon, *(2.0**-b for b in bits)])


def _pairing(u: Sequence[np.ndarray], v: Sequence[np.ndarray]) -> float:
    return float(sum(np.sum((a * b).real) for a, b in zip(u, v, strict=True)))


def _largest(values: np.ndarray) -> float:
    return float(np.max(np.abs(values), initial=0.0))


@dataclass(frozen=True)
class _Limits:
    tiny: float
    large: float


def _limits(dtype: np.dtype) -> _Limits:
    """Beyond `large` other orders of the same operations may overflow."""
    if dtype.itemsize == 2:
        return _Limits(6e-5, 100.0) if dtype.kind == "f" else _Limits(1e-38, 1e15)
    single = dtype.itemsize == (8 if dtype.kind == "c" else 4)
    return _Limits(1e-38, 1e15) if single else _Limits(1e-300, 1e100)
