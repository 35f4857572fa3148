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
from ..ir.program import Program
from .making import Sample
from .stages import STAGES, Arrays, Stage, first_line, stage_function
from .widening import coarsest, widened, widened_array

_QUICK = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
_AMOUNTS = ((0, 0), (1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, -1), (2, -1), (-2, 1), (0.5, -2))
"""Of the two noises in each run, in units of the roundoff. The first run has none."""


@dataclass(frozen=True, eq=False)
class Expected:
    """runs: by stage the results of every run. failures: why JAX has no such stage.

    epsilon: the unit roundoff of the coarsest dtype in the Program.
    finite: whether the results of all equations are, but for those of nested Programs.
    """

    runs: dict[Stage, list[Arrays]]
    failures: dict[Stage, str]
    epsilon: float
    finite: bool


def expected(sample: Sample) -> Expected:
    runs: dict[Stage, list[Arrays]] = {}
    failures: dict[Stage, str] = {}
    epsilon = coarsest(sample.program)
    program = widened(sample.program)
    given = [tuple(map(widened_array, a)) for a in (sample.inputs, sample.tangents, sample.cotangents)]
    finite = True
    for stage in STAGES:
        asked = _with_everything(program) if stage == "value" else program
        made = jax.jit(_noisy(stage, asked), compiler_options=_QUICK)
        try:
            found = [made(epsilon * np.array(amounts), *given) for amounts in _AMOUNTS]
            if stage == "value":
                finite = all(np.isfinite(y).all() for y in found[0])
                found = [arrays[: len(program.outputs)] for arrays in found]
            runs[stage] = [tuple(map(np.asarray, arrays)) for arrays in found]
        except Exception as error:
            failures[stage] = first_line(error)
    return Expected(runs, failures, epsilon, finite)


def _with_everything(program: Program) -> Program:
    """The results, and after them those of all equations."""
    return replace(program, outputs=(*program.outputs, *(v for eq in program.equations for v in eq.outputs)))


def _noisy(stage: Stage, program: Program) -> Callable[..., tuple]:
    def f(amounts: Any, *directions: Sequence[Any]) -> tuple:
        counter = itertools.count()

        def after(x: Any) -> Any:
            if not jnp.issubdtype(x.dtype, jnp.inexact):
                return x
            rng = np.random.default_rng(next(counter))
            first, second = rng.uniform(-1, 1, (2, *x.shape))
            return x * (1 + amounts[0] * first + amounts[1] * second)

        return stage_function(stage, to_jax(program, after), program)(*directions)

    return f
