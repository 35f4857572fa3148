"""A problem's function and JAX's derivatives of it, in float64 or at the inputs' own precision."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..frontend.adapter import jaxprs
from ..frontend.tracing import trace
from ..quotients import widened
from ._nestings import NESTINGS, Nesting, hessian_product
from ._problem import Arrays, Problem


def moved(point: Sequence[np.ndarray], h: float, tangents: Sequence[np.ndarray]) -> Arrays:
    """The point, moved by h times the tangents, which is rounded once."""
    steps = zip(point, map(widened, tangents), strict=True)
    return tuple(np.asarray(widened(x) + h * v).astype(x.dtype) for x, v in steps)


class Evaluation:
    """What is returned is float64, or complex128, in either case.

    point: the active leaves, as they go in; others: the other leaves. double: whether in float64.
    whole: whether XLA compiles the function as a whole, or each operation of its Program for itself.
    """

    def __init__(self, problem: Problem, double: bool, whole: bool = True):
        flat = problem.flat((problem.in_double if double else None) or problem.f)
        self.double = double
        self.others = problem.others
        with self.types():
            self.point: Arrays = tuple(map(self._own, map(jax.numpy.asarray, problem.point)))
            if not whole:
                flat = trace(flat)(self.point, self.others).to_jax()

        def forward(xs, rest, vs):
            return jax.jvp(lambda *active: flat(active, rest), xs, vs)[1]

        def backward(xs, rest, us):
            return jax.vjp(lambda *active: flat(active, rest), *xs)[1](us)

        # Everything is an argument of the jitted functions, so that XLA wastes no time on folding constants.
        functions = flat, forward, backward, *(hessian_product(nesting, flat) for nesting in NESTINGS)
        self._functions: tuple[Callable, ...] = tuple(map(jax.jit, functions)) if whole else functions
        self._flat = flat
        with self.types():
            shapes = jax.eval_shape(flat, self.point, self.others)
        self.result_dtypes: list[np.dtype] = [y.dtype for y in shapes]

    def jaxpr(self) -> Any:
        """Of the active leaves, then the others."""
        with self.types():
            return jax.make_jaxpr(self._flat)(self.point, self.others)

    def inside(self) -> tuple[float, set[str]]:
        """The coarsest unit roundoff that the function computes with, and the names of its primitives."""
        dtypes, names = _inside(self.jaxpr())
        used = (*self.result_dtypes, *dtypes, *(x.dtype for x in self.point))
        return max(float(jnp.finfo(dtype).eps) for dtype in used), names

    def value(self, point: Sequence[np.ndarray]) -> Arrays:
        return self._run(0, point)

    def jvp(self, point: Sequence[np.ndarray], tangents: Sequence[np.ndarray]) -> Arrays:
        return self._run(1, point, tuple(map(self._own, tangents)))

    def vjp(self, point: Sequence[np.ndarray], cotangents: Sequence[np.ndarray]) -> Arrays:
        return self._run(2, point, self._of_results(cotangents))

    def hessian_product(
        self,
        nesting: Nesting,
        point: Sequence[np.ndarray],
        cotangents: Sequence[np.ndarray],
        tangents: Sequence[np.ndarray],
    ) -> Arrays:
        directions = self._of_results(cotangents), tuple(map(self._own, tangents))
        return self._run(3 + NESTINGS.index(nesting), point, *directions)

    def _of_results(self, cotangents: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
        given = zip(cotangents, self.result_dtypes, strict=True)
        return tuple(u.astype(dtype) for u, dtype in given)

    def moved(self, h: float, tangents: Sequence[np.ndarray]) -> Arrays:
        """The value at the point, moved by h times the tangents."""
        return self.value(moved(self.point, h, tangents))

    def _run(self, which: int, point: Sequence[np.ndarray], *directions: Any) -> Arrays:
        with self.types():
            return tuple(map(widened, self._functions[which](tuple(point), self.others, *directions)))

    def _own(self, x: Any) -> np.ndarray:
        return widened(x) if self.double else np.asarray(x)

    def types(self) -> AbstractContextManager:
        """In which JAX has the dtypes that the function is evaluated in."""
        return jax.enable_x64(self.double or jax.config.jax_enable_x64)


def _inside(jaxpr: Any) -> tuple[set[Any], set[str]]:
    """The float and complex dtypes, and the names of the primitives, of a jaxpr and those nested in it."""
    equations = list(jaxprs.all_equations(jaxpr))
    dtypes = {v.aval.dtype for eqn in equations for v in eqn.outvars if jaxprs.is_inexact(v.aval)}
    return dtypes, {eqn.primitive.name for eqn in equations}
