"""The reference: JAX in float64 at the very numbers that the engines get, and the function along a line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax
import numpy as np

from ._measure import first_line
from ._problem import Arrays, Problem, widened

_DOUBLE = {np.dtype(np.float64), np.dtype(np.complex128)}


@dataclass(frozen=True, eq=False)
class Exact:
    """value, jvp and vjp in float64; a derivative that JAX lacks is None, and `notes` says why.

    along: h -> f(x + hv) for the problem's direction v.
    """

    value: Arrays
    jvp: Arrays | None
    vjp: Arrays | None
    along: Callable[[float], Arrays]
    precision: str
    notes: tuple[str, ...] = ()


def exact(problem: Problem) -> Exact:
    """Falls back on the inputs' own precision, with a note, where the function refuses float64.

    Raises what the function raises at that precision.
    """
    try:
        with jax.enable_x64(True):
            return _evaluate(problem, widened, "float64")
    except Exception as reason:
        why = first_line(reason)
        note = f"the function does not run in float64 ({why}); the reference has its own precision"
        return _evaluate(problem, np.asarray, "as given", note)


def _evaluate(problem: Problem, change: Callable, precision: str, *notes: str) -> Exact:
    flat = problem.flat(problem.f)
    point = tuple(map(change, map(jax.numpy.asarray, problem.point)))
    tangents = tuple(map(change, problem.tangents))
    double = precision == "float64"
    jitted = jax.jit(flat)

    def along(h: float) -> Arrays:
        with jax.enable_x64(double or jax.config.jax_enable_x64):
            moved = tuple((x + h * v).astype(x.dtype) for x, v in zip(point, tangents, strict=True))
            return tuple(map(widened, jitted(moved, problem.others)))

    # Everything is an argument of the jitted functions, lest XLA spends its time on folding constants.
    @jax.jit
    def forward(xs, rest, vs):
        return jax.jvp(lambda *active: flat(active, rest), xs, vs)[1]

    @jax.jit
    def backward(xs, rest, us):
        return jax.vjp(lambda *active: flat(active, rest), *xs)[1](us)

    value = jitted(point, problem.others)
    cotangents = tuple(u.astype(y.dtype) for u, y in zip(problem.cotangents, value, strict=True))
    jvp, no_jvp = _attempt("JVP", lambda: forward(point, problem.others, tangents))
    vjp, no_vjp = _attempt("VJP", lambda: backward(point, problem.others, cotangents))
    narrow = sorted({str(y.dtype) for y in value if y.dtype not in _DOUBLE}) if double else []
    own = [f"the function itself returns {', '.join(narrow)} for float64 inputs"] if narrow else []
    return Exact(tuple(map(widened, value)), jvp, vjp, along, precision, (*notes, *own, *no_jvp, *no_vjp))


def _attempt(name: str, derive: Callable[[], tuple]) -> tuple[Arrays | None, list[str]]:
    try:
        return tuple(map(widened, derive())), []
    except Exception as reason:
        return None, [f"JAX has no {name} of the function: {first_line(reason)}"]
