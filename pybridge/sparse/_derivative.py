"""`sparse_jacobian` and `sparse_hessian`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp
from jax.experimental.sparse import BCOO

from ..api.bridge import bridge
from ..errors import ArgumentError, UnknownOption, WrongPattern
from ..frontend.adapter import jaxprs
from ..frontend.names import function_name
from ._making import Making, Rest
from ._pattern import SparsityPattern
from ._plan import SparsePlan
from ._problem import Others, Problem, taken_apart

FORMATS = ("bcoo", "csr", "csc", "coo")
MODES = ("auto", "jvp", "vjp")


def sparse_jacobian(
    f: Callable,
    argnums: int = 0,
    *,
    pattern: Any = None,
    format: str = "bcoo",
    mode: str = "auto",
    constant_part: bool = True,
    engine: str = "transpose",
    execute: str = "auto",
) -> SparseDerivative:
    """`sparse_jacobian(f)(*args, **kwargs)` is the Jacobian of `f` as a sparse matrix.

    Its shape is (m, n): a row for each element of the result of `f`, a column for each of the argument
    `argnums`, both in row-major order; leaves of a pytree follow one another as `jax.tree.leaves` has them.
    The argument is of float32 or float64, or of a smaller float, in all its leaves alike.

    The pattern is found once for each structure, shapes and dtypes of the arguments: from the Program of `f`,
    for all values of the arguments, so that it may have entries that are zero, and never lacks one. Columns
    that share no row get one colour, and their sum one JVP; all JVPs are a batch of the bridged `f`, compiled
    with the decompression. Entries to which only linear operations lead are computed once, with the pattern.

    pattern: which entries there are, if you know: a scipy sparse matrix, a BCOO, an array, or what
        `.pattern(...)` returned. It is tried with a random direction at the first call that has values.
    format: "bcoo" (`jax.experimental.sparse.BCOO` with sorted and unique indices), or "csr", "csc", "coo"
        (the `scipy.sparse` arrays, which there are not under `jit`).
    mode: "jvp" compresses columns, "vjp" rows; "auto" takes that with fewer products, counting a VJP as one
        and a half JVPs.
    constant_part: whether constant entries are computed once, where that leaves fewer colours.
    engine, execute: as for `bridge`.

    Raises DensePattern, with the user's line, where the dependence is too dense to be written down or
    coloured; NotDifferentiable for complex, integer and boolean arguments and results; WrongPattern for a
    pattern of another shape, or one that lacks entries; ArgumentError for arguments that do not fit;
    UnknownOption; what `trace` raises.

    Curtis, Powell and Reid (1974); Coleman and More (1983); Griewank and Walther (2008), chapters 7 and 8.
    """
    return SparseDerivative(
        f, _Options(argnums, pattern, format, mode, constant_part, False), engine, execute
    )


def sparse_hessian(
    f: Callable,
    argnums: int = 0,
    *,
    pattern: Any = None,
    format: str = "bcoo",
    constant_part: bool = True,
    engine: str = "transpose",
    execute: str = "auto",
) -> SparseDerivative:
    """`sparse_hessian(f)(*args, **kwargs)` is the Hessian of `f`, which returns a number, as a sparse matrix.

    Its shape is (n, n), with n elements of the argument `argnums`. The pattern is that of the Jacobian of
    the gradient, a Program that Julia makes. Colours are those of a star colouring, where every entry
    can be read from one of two symmetric places, and each is one Hessian-vector product, forward over
    reverse; where rules of the user's make derivatives, which need not be symmetric, those of columns.

    Options, and what is raised, as for `sparse_jacobian`; a pattern may have one triangle alone.
    ArgumentError where `f` returns other than one number.

    Gebremedhin, Manne and Pothen, What color is your Jacobian? (2005), section 6.
    """
    return SparseDerivative(
        f, _Options(argnums, pattern, format, "auto", constant_part, True), engine, execute
    )


@dataclass(frozen=True)
class _Options:
    argnums: int
    pattern: Any
    format: str
    mode: str
    constant_part: bool
    symmetric: bool

    def checked(self) -> _Options:
        """With the pattern read. Raises UnknownOption."""
        if type(self.argnums) is not int:
            raise UnknownOption(
                f"argnums is the number of one argument, got {self.argnums!r}: for several, make them one, a "
                "tuple"
            )
        for name, value, known in (("format", self.format, FORMATS), ("mode", self.mode, MODES)):
            if value not in known:
                raise UnknownOption(f"there is no {name} {value!r}; there are {', '.join(map(repr, known))}")
        given = None if self.pattern is None else SparsityPattern.of(self.pattern)
        return replace(self, pattern=given)


@dataclass(frozen=True)
class _Entry:
    """data: (elements of the argument, other arguments) -> values of the pattern's entries."""

    plan: SparsePlan
    data: Callable[[Any, Others], Any]


class SparseDerivative:
    """A sparse Jacobian or Hessian as a function of the arguments of `f`."""

    def __init__(self, f: Callable, options: _Options, engine: str, execute: str):
        self._bridged = bridge(f, engine=engine, execute=execute)
        self._bridge = functools.partial(bridge, engine=engine, execute=execute)
        self._f = f
        self._options = options.checked()
        self._entries: dict[Any, _Entry] = {}
        self._tried: set[Any] = set()

    def __repr__(self) -> str:
        what = "Hessian" if self._options.symmetric else "Jacobian"
        return f"<sparse {what} of {function_name(self._f)}>"

    def __call__(self, *args, **kwargs) -> Any:
        problem, x, others = self._problem(args, kwargs)
        traced = jaxprs.any_tracer(jax.tree.leaves((x, others)))
        if traced and self._options.format != "bcoo":
            raise ArgumentError(
                f"there are no {self._options.format} matrices of scipy under jit and other transformations: "
                'take format="bcoo" there'
            )
        key, entry = self._entry(problem, x, others)
        if self._options.pattern is not None and not traced and key not in self._tried:
            self._try(entry, problem, x, others)
            self._tried.add(key)
        return _formatted(entry.plan.pattern, entry.data(x, others), self._options.format)

    def plan(self, *args, **kwargs) -> SparsePlan:
        """How it is computed for such arguments: pattern, colours, and what finding them took."""
        return self._entry(*self._problem(args, kwargs))[1].plan

    def pattern(self, *args, at_point: bool = False, **kwargs) -> SparsityPattern:
        """Which entries may be other than zero, for all values of arguments of such shapes.

        at_point: for the values of these arguments alone, and no others: branches, selections and indices
            are those taken there, and factors that are zero there make zeros. To be given as `pattern=`.
        Raises ArgumentError for `at_point` where a transformation of JAX traces the arguments.
        """
        problem, x, others = self._problem(args, kwargs)
        if at_point and jaxprs.any_tracer(jax.tree.leaves((x, others))):
            raise ArgumentError("a pattern at a point needs values: find it outside of jit")
        return self._making(problem, x, others).pattern(at_point)

    def _problem(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Problem, Any, Others]:
        return taken_apart(self._f, self._options.argnums, args, kwargs)

    def _making(self, problem: Problem, x: Any, others: Others) -> Making:
        return Making(problem, x, others, self._options.symmetric, self._options.mode)

    def _entry(self, problem: Problem, x: Any, others: Others) -> tuple[Any, _Entry]:
        leaves, tree = jax.tree.flatten((x, others))
        key = problem.place, problem.tree, problem.shapes, tree, tuple(map(jaxprs.signature, leaves))
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = self._made(problem, x, others)
        return key, entry

    def _made(self, problem: Problem, x: Any, others: Others) -> _Entry:
        making, rest = self._making(problem, x, others), None
        if self._options.pattern is not None:
            plan = making.by_pattern(self._options.pattern)
        else:
            plan, rest = making.by_detection(self._options.constant_part)
        function = self._function(problem) if rest is None else self._bridge(rest)
        return _Entry(plan, jax.jit(lambda x, others: plan.data(lambda x: function(x, others), x)))

    def _function(self, problem: Problem) -> Rest:
        """That of which the derivative is the Jacobian."""
        if self._options.symmetric:
            return jax.grad(problem.scalar(self._bridged))
        return problem.flat(self._bridged)

    def _try(self, entry: _Entry, problem: Problem, x: Any, others: Others) -> None:
        """Raises WrongPattern where the pattern gives another product with a random direction than a JVP."""
        v = jnp.asarray(np.random.default_rng(0).choice([-1.0, 1.0], x.shape), x.dtype)
        function = self._function(problem)
        expected = np.asarray(jax.jit(_product(function))(x, v, others), np.float64)
        matrix = entry.plan.pattern.with_data(np.asarray(entry.data(x, others), np.float64))
        found, size = matrix @ np.asarray(v, np.float64), abs(matrix) @ np.ones(len(v))
        off = np.abs(found - expected) - np.sqrt(np.finfo(x.dtype).eps) * (size + np.abs(expected))
        if (off > 0).any():
            row = int(off.argmax())
            raise WrongPattern(
                f"the pattern lacks entries, in row {row} for one: with a random direction it gives "
                f"{found[row]:.6g} there, and the derivative {expected[row]:.6g}. Leave pattern= out to have "
                "it found"
            )


def _product(function: Rest) -> Callable[[Any, Any, Others], Any]:
    return lambda x, v, others: jax.jvp(lambda x: function(x, others), (x,), (v,))[1]


def _formatted(pattern: SparsityPattern, data: Any, format: str) -> Any:
    if format == "bcoo":
        indices = jnp.asarray(np.stack([pattern.rows, pattern.columns], 1))
        return BCOO((data, indices), shape=pattern.shape, indices_sorted=True, unique_indices=True)
    values = np.asarray(data)
    if format == "coo":
        matrix = sp.coo_array((values, (pattern.rows, pattern.columns)), shape=pattern.shape)
        matrix.has_canonical_format = True
        return matrix
    return pattern.with_data(values) if format == "csr" else _csc(pattern, values)


def _csc(pattern: SparsityPattern, values: np.ndarray) -> Any:
    order, rows, indptr = pattern.by_columns
    return sp.csc_array((values[order], rows, indptr), shape=pattern.shape)
