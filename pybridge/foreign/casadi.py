"""Functions of CasADi, differentiated by CasADi."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from ..errors import ArgumentError
from .primitive import apply, array


def casadi_function(f: Any) -> Callable[..., Any]:
    """A `casadi.Function` as a JAX function, whose derivatives CasADi makes.

    Takes an array or number for each input, or pytrees with as many leaves, in this order: of the input's
    shape, of shape (n,) for n x 1, or a number for 1 x 1. Returns the result, or a tuple of them, in shapes
    by the same rule. CasADi computes in float64; where JAX has no 64-bit types on, float32 comes back.

    Forward and reverse mode, nested to any depth; jit, vmap (one call after another). CasADi runs on the
    CPU, in a callback. Raises ArgumentError for another number or other shapes of arguments.
    """

    def called(*arguments: Any) -> Any:
        arrays = [array(f.name(), leaf) for leaf in jax.tree.leaves(arguments)]
        shapes = [f.size_in(i) for i in range(f.n_in())]
        if len(arrays) != len(shapes) or not all(map(_fits, arrays, shapes)):
            taken, given = ", ".join(map(str, shapes)), ", ".join(str(x.shape) for x in arrays)
            raise ArgumentError(f"{f.name()} takes matrices of sizes {taken}, not arrays of shapes {given}")
        results = [_result(f.size_out(i)) for i in range(f.n_out())]
        return apply(CasadiFunction(f), arrays, results[0] if len(results) == 1 else tuple(results))

    called.__name__ = f.name()
    return called


@dataclass(frozen=True, eq=False)
class CasadiFunction:
    """f: a casadi.Function, whose inputs and outputs are matrices."""

    f: Any

    @property
    def name(self) -> str:
        return self.f.name()

    def run(self, operands: Sequence[np.ndarray]) -> list[np.ndarray]:
        matrices = [x.astype(float).reshape(self.f.size_in(i)) for i, x in enumerate(operands)]
        return [y.full() for y in self.f.call(matrices)]

    def pushed(self, places: tuple[int, ...], results: tuple[int, ...]) -> CasadiFunction:
        import casadi

        xs, ys = self._symbols()
        vs = [casadi.MX.sym(f"v{i}", *self.f.size_in(i)) for i in places]
        pairs = list(zip(places, vs, strict=True))
        found = [sum(casadi.jtimes(ys[r], xs[i], v) for i, v in pairs) for r in results]
        return CasadiFunction(casadi.Function(f"{self.name}_jvp", [*xs, *vs], found))

    def pulled(self, places: tuple[int, ...], results: tuple[int, ...]) -> CasadiFunction:
        import casadi

        xs, ys = self._symbols()
        us = [casadi.MX.sym(f"u{r}", *self.f.size_out(r)) for r in results]
        pairs = list(zip(results, us, strict=True))
        found = [sum(casadi.jtimes(ys[r], xs[i], u, True) for r, u in pairs) for i in places]
        return CasadiFunction(casadi.Function(f"{self.name}_vjp", [*xs, *us], found))

    def _symbols(self) -> tuple[list[Any], list[Any]]:
        import casadi

        xs = [casadi.MX.sym(f"x{i}", *self.f.size_in(i)) for i in range(self.f.n_in())]
        return xs, self.f.call(xs)


def _fits(array: Any, matrix: tuple[int, int]) -> bool:
    return array.shape in (matrix, _result(matrix).shape)


def _result(matrix: tuple[int, int]) -> jax.ShapeDtypeStruct:
    rows, columns = matrix
    shape = () if matrix == (1, 1) else (rows,) if columns == 1 else matrix
    return jax.ShapeDtypeStruct(shape, jax.dtypes.canonicalize_dtype(np.float64))
