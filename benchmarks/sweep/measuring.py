"""The times of a problem in this process.

All ways of running are timed in one process, in short turns, and the least time of each counts: what else
runs on the machine only ever adds.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from unittest import mock

import jax
from jax.interpreters import partial_eval

import pybridge as pb
from pybridge.comparison._timing import sampler
from pybridge.errors import PyBridgeError
from pybridge.ir.cost_model import ROUTINES
from pybridge.ir.deferred import values
from pybridge.ir.program import Program
from pybridge.runtime import julia_call

from .families import GRADIENT, Problem
from .measured import AUTO, LEFT, NATIVE, XLA, Measurement

_TURN = 2e-3  # seconds that a side is called for, one call after the other, before the next side is
_BUDGET, _LONGER = 0.03, 0.4  # seconds for each side; the longer, where the choice seems wrong
_FEWEST, _MOST = 3, 200  # turns
_FAR, _LONG = 4.0, 0.02  # times as slow, and seconds: what is more than both has one turn

Sampler = Callable[[], float]


def measure(problem: Problem) -> Measurement:
    """The times of each way of running. Does not raise."""
    with jax.enable_x64(problem.x64):
        try:
            return _measured(problem)
        except Exception as error:  # what JAX and its compiler raise is of many types
            return Measurement(problem.name, failure=f"{type(error).__name__}: {error}".splitlines()[0][:200])


def _measured(problem: Problem) -> Measurement:
    args = problem.arguments()
    one = Measurement(problem.name, programs=tuple(map(str, _programs(problem, args))))
    samplers = {XLA: _sampler(problem, XLA, args)}
    with contextlib.suppress(PyBridgeError):
        samplers[NATIVE] = _sampler(problem, NATIVE, args)
    if problem.mode == GRADIENT:
        with mock.patch.object(julia_call, "reason_for_xla", lambda program: ROUTINES):
            samplers[LEFT] = _sampler(problem, AUTO, args)
    if one.choice == AUTO and NATIVE in samplers:
        samplers[AUTO] = _sampler(problem, AUTO, args)
    one = replace(one, seconds=_least(samplers, {}, _BUDGET))
    return replace(one, seconds=_least(samplers, one.seconds, _LONGER)) if one.is_wrong else one


def _programs(problem: Problem, args: tuple[jax.Array, ...]) -> Iterator[Program]:
    """What is chosen for and runs: not what would be computed anew for another cotangent."""
    closed = jax.jit(problem.function(pb.bridge)).trace(*args).jaxpr
    alive, _ = partial_eval.dce_jaxpr(closed.jaxpr, [True] * len(closed.out_avals))
    for eq in alive.eqns:
        if eq.primitive is julia_call.julia_call_p:
            yield values(eq.params["program"])


def _sampler(problem: Problem, execute: str, args: tuple[jax.Array, ...]) -> Sampler:
    """Compiles, and raises what that raises."""
    compiled = jax.jit(problem.function(lambda f: pb.bridge(f, execute=execute)))
    return sampler(lambda: compiled(*args), _TURN)


def _least(samplers: Mapping[str, Sampler], known: Mapping[str, float], budget: float) -> dict[str, float]:
    """The least seconds of each side, which take turns."""
    least = dict(known)
    spent = 0.0
    for turn in range(_MOST):
        if turn >= _FEWEST and spent > budget * len(samplers):
            break
        fastest = min(least.values(), default=math.inf)
        for name, sample in samplers.items():
            if least.get(name, 0.0) > max(_FAR * fastest, _LONG):
                continue
            taken = sample()
            spent += max(taken, _TURN)
            least[name] = min(taken, least.get(name, taken))
    return least
