"""What a Program's results should be, and how far rounding may move them.

JAX evaluates the Program in double precision, every result of every equation multiplied by a random number
that is as near to one as the Program's own precision has it. The spread of such runs is what rounding errors
of the size of one unit do, in values, derivatives and comparisons of numbers that almost agree.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..frontend.emission import to_jax
from ..ir.program import Equation, Program
from ..ir.schema import names
from ..ir.widening import coarsest, widened, widened_array
from .making import Sample
from .stages import STAGES, Arrays, Stage, first_line, stage_function

_QUICK = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
_AMOUNTS = ((0, 0), (1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, -1), (2, -1), (-2, 1), (0.5, -2))
"""Of the two noises in each run, in units of the roundoff. The first run has none."""
_LARGER = ((3, 2), (-3, -2), (2, -3), (-2, 3), (4, 0), (0, -4))
"""Of runs for integers alone: few runs may all be on one side of where those jump."""
SPREAD = len(_AMOUNTS)
"""How many runs of a stage say how far rounding moves results that are not integers."""


@dataclass(frozen=True, eq=False)
class Expected:
    """runs: by stage the results of every run. failures: why JAX has no such stage.

    epsilon: the unit roundoff of the coarsest dtype in the Program.
    finite: whether the results of all equations are, but for those of nested Programs.
    doubt: how JAX's derivative is not that of the value, by difference quotients; empty where it is, or where
        that cannot be told.
    """

    runs: dict[Stage, list[Arrays]]
    failures: dict[Stage, str]
    epsilon: float
    finite: bool
    doubt: str = ""


def expected(sample: Sample) -> Expected:
    runs: dict[Stage, list[Arrays]] = {}
    failures: dict[Stage, str] = {}
    epsilon = coarsest(sample.program)
    program = widened(sample.program)
    given = [tuple(map(widened_array, a)) for a in (sample.inputs, sample.tangents, sample.cotangents)]
    finite, quotient = True, None
    for stage in STAGES:
        asked = _with_everything(program) if stage == "value" else program
        made = jax.jit(_noisy(stage, asked), compiler_options=_QUICK)
        try:
            found = [made(epsilon * np.array(amounts), *given) for amounts in _AMOUNTS + _LARGER]
            if stage == "value":
                finite = all(np.isfinite(y).all() for y in found[0])
                quotient = _quotient(made, sample.program, given) if finite else None
                found = [arrays[: len(program.outputs)] for arrays in found]
            runs[stage] = [tuple(map(np.asarray, arrays)) for arrays in found]
        except Exception as error:
            failures[stage] = first_line(error)
    doubt = "" if quotient is None else _doubt(runs, quotient, given)
    return Expected(runs, failures, epsilon, finite, doubt)


_OTHER_DERIVATIVES = frozenset({"custom_jvp", "custom_vjp", "linear_call", "stop_gradient"})
"""With these, derivatives need not be those of the value."""
_STEP = 1e-5


def _quotient(made: Callable[..., tuple], program: Program, given: list[Arrays]) -> Arrays | None:
    """The results' difference quotient along the tangents; None where the function is not smooth."""
    if not _OTHER_DERIVATIVES.isdisjoint(eq.op for eq in program.all_equations()):
        return None
    inputs, tangents, cotangents = given
    kept = [i for i, t in enumerate(program.output_types) if t.inexact]

    def along(h: float) -> list[np.ndarray]:
        directions = iter(tangents)
        active = (t.inexact for t in program.input_types)
        moved = tuple(x + h * next(directions) if a else x for x, a in zip(inputs, active, strict=True))
        found = made(np.zeros(2), moved, tangents, cotangents)
        return [np.asarray(found[i]) for i in kept]

    fine, coarse = (
        tuple((a - b) / (2 * h) for a, b in zip(along(h), along(-h), strict=True)) for h in (_STEP, 3 * _STEP)
    )
    smooth = all(_close(a, b, 1e-5) for a, b in zip(fine, coarse, strict=True))
    return fine if smooth else None


def _doubt(runs: dict[Stage, list[Arrays]], quotient: Arrays, given: list[Arrays]) -> str:
    _, tangents, cotangents = given
    if "jvp" in runs and not all(map(_close, runs["jvp"][0], quotient)):
        return "the JVP is not the derivative of the value"
    if "vjp" in runs:
        back = sum(np.sum((a * b).real) for a, b in zip(runs["vjp"][0], tangents, strict=True))
        forth = sum(np.sum((a * b).real) for a, b in zip(cotangents, quotient, strict=True))
        if not _close(np.asarray(back), np.asarray(forth)):
            return "the VJP is not the derivative of the value"
    return ""


def _close(a: np.ndarray, b: np.ndarray, rtol: float = 1e-3) -> bool:
    scale = 1 + np.max(np.abs(b), initial=0)
    return bool(np.max(np.abs(a - b), initial=0) <= rtol * scale)  # not of NaN


def _with_everything(program: Program) -> Program:
    """The results, and after them those of all equations."""
    return replace(program, outputs=(*program.outputs, *(v for eq in program.equations for v in eq.outputs)))


def _noisy(stage: Stage, program: Program) -> Callable[..., tuple]:
    def f(amounts: Any, *directions: Sequence[Any]) -> tuple:
        counter = itertools.count()

        def after(eq: Equation, x: Any) -> Any:
            if not jnp.issubdtype(x.dtype, jnp.inexact):
                return x
            x = _spread_nans(eq, x)
            rng = np.random.default_rng(next(counter))
            first, second = rng.uniform(-1, 1, (2, *x.shape))
            return x * (1 + amounts[0] * first + amounts[1] * second)

        return stage_function(stage, to_jax(program, after), program)(*directions)

    return f


_OF_MATRICES = frozenset(names("eig eigh geqrf hessenberg lu qr schur svd tridiagonal"))


def _spread_nans(eq: Equation, x: Any) -> Any:
    """Over a transform or a decomposition, which decides what is finite where not all of its operand is."""
    axes = len(eq.attrs["fft_lengths"]) if eq.op == "fft" else 2 * (eq.op in _OF_MATRICES)
    if axes == 0:
        return x
    whole = range(len(eq.inputs[0].type.shape) - axes, x.ndim)
    return jnp.where(jnp.isfinite(x).all(whole, keepdims=True), x, jnp.nan)
