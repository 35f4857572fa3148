"""A user's function as one from the elements of an argument to those of its result."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import ArgumentError, NotDifferentiable
from ..frontend.names import function_name

Others = tuple[tuple[Any, ...], dict[str, Any]]
"""The arguments that the function is not differentiated by."""


@dataclass(frozen=True)
class Problem:
    """place: of the argument among those by position. tree, shapes: of the argument."""

    f: Callable
    place: int
    tree: Any
    shapes: tuple[tuple[int, ...], ...]

    @property
    def name(self) -> str:
        return function_name(self.f)

    @property
    def size(self) -> int:
        return sum(map(math.prod, self.shapes))

    def _argument(self, x: Any) -> Any:
        """The argument that has these elements."""
        if len(self.shapes) == 1:
            return jax.tree.unflatten(self.tree, [x.reshape(self.shapes[0])])
        ends = np.cumsum([math.prod(shape) for shape in self.shapes])[:-1]
        parts = jnp.split(x, ends)
        leaves = [part.reshape(shape) for part, shape in zip(parts, self.shapes, strict=True)]
        return jax.tree.unflatten(self.tree, leaves)

    def _call(self, f: Callable, x: Any, others: Others) -> Any:
        args, kwargs = others
        return f(*args[: self.place], self._argument(x), *args[self.place :], **kwargs)

    def flat(self, f: Callable) -> Callable[[Any, Others], Any]:
        """`f`, from the elements of the argument to those of the result, leaves one after the other."""
        return lambda x, others: elements(self._call(f, x, others), self.name)

    def scalar(self, f: Callable) -> Callable[[Any, Others], Any]:
        """`f`, whose result is one real number. Raises ArgumentError where it is not."""

        def of(x: Any, others: Others) -> Any:
            leaves = jax.tree.leaves(self._call(f, x, others))
            if len(leaves) != 1 or jnp.shape(leaves[0]) != ():
                shapes = ", ".join(str(jnp.shape(y)) for y in leaves)
                raise ArgumentError(
                    f"a Hessian is that of a function of one number, and {self.name} returns the shapes "
                    f"{shapes}: take sparse_jacobian, or sum the results"
                )
            return elements(leaves[0], self.name)[0]

        return of


def taken_apart(
    f: Callable, argnums: int, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Problem, Any, Others]:
    """The problem, the elements of the argument, and the other arguments.

    Raises ArgumentError where there is no such argument or its leaves have several dtypes; NotDifferentiable
    for one without derivatives.
    """
    name = function_name(f)
    place = argnums + len(args) if argnums < 0 else argnums
    if not 0 <= place < len(args):
        raise ArgumentError(
            f"{name} is differentiated with respect to argument {argnums}, and was called with {len(args)} "
            "by position: give it by position, or name another in argnums"
        )
    leaves, tree = jax.tree.flatten(args[place])
    arrays = [_array(x, name, place) for x in leaves]
    dtypes = sorted({str(a.dtype) for a in arrays})
    if len(dtypes) != 1:
        found = ", ".join(dtypes) or "no arrays at all"
        raise ArgumentError(
            f"the leaves of argument {place} of {name} must have one dtype, and there are {found}: convert "
            "them, or choose another argument (argnums)"
        )
    x = arrays[0].reshape(-1) if len(arrays) == 1 else jnp.concatenate([a.reshape(-1) for a in arrays])
    problem = Problem(f, place, tree, tuple(a.shape for a in arrays))
    return problem, x, ((*args[:place], *args[place + 1 :]), kwargs)


def _array(x: Any, name: str, place: int) -> Any:
    try:
        array = jnp.asarray(x)
    except TypeError:
        raise ArgumentError(
            f"argument {place} of {name} has a {type(x).__name__}, which is no array"
        ) from None
    _check_real(array.dtype, f"argument {place} of {name}")
    return array


def _check_real(dtype: Any, what: str) -> None:
    if jnp.issubdtype(dtype, jnp.complexfloating):
        raise NotDifferentiable(
            f"{what} is complex ({dtype}), and there are no sparse derivatives of complex numbers: let the "
            "function take and return real and imaginary parts"
        )
    if not jnp.issubdtype(dtype, jnp.floating):
        raise NotDifferentiable(f"{what} has the dtype {dtype}, and only floats have derivatives: convert it")


def elements(result: Any, name: str) -> Any:
    """Those of all leaves, one after the other. Raises NotDifferentiable unless they are real floats."""
    leaves = [jnp.asarray(y) for y in jax.tree.leaves(result)]
    if not leaves:
        raise ArgumentError(f"{name} returns no arrays, so that there is nothing to differentiate")
    for y in leaves:
        _check_real(y.dtype, f"a result of {name}")
    flat = [y.reshape(-1) for y in leaves]
    return flat[0] if len(flat) == 1 else jnp.concatenate(flat)
