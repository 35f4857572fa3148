"""What is compared: a function at a point, with random directions for its inputs and results."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import keystr, tree_flatten_with_path

from ..api.bridged import Bridged
from ..errors import ArgumentError, NotDifferentiable, PyBridgeError
from ..frontend.names import function_name
from ..frontend.tracing import trace
from ..quotients import normal

Arrays = tuple[np.ndarray, ...]

_NUMBERS = (bool, int, float, complex)


@dataclass(frozen=True, eq=False)
class Problem:
    """f: the function of the user's pytrees; `args` are its arguments, `tree` their structure.

    leaves: the arguments' arrays at the precision at which JAX runs them; Python's numbers stay numbers.
    active: the places in `leaves` of floats and complex numbers; only they have tangents.
    tangents, cotangents: for each active leaf, and for each float or complex result.
    other_tangents: as many more, for second derivatives.
    in_double: the same function of float64, where `f` is one that takes the dtypes of its arguments alone.
    """

    name: str
    f: Callable
    args: tuple
    tree: Any
    leaves: tuple[Any, ...]
    active: tuple[int, ...]
    tangents: Arrays
    cotangents: Arrays
    other_tangents: Arrays
    in_double: Callable | None = None

    @property
    def point(self) -> tuple[Any, ...]:
        """The active leaves."""
        return tuple(self.leaves[i] for i in self.active)

    @property
    def epsilon(self) -> float:
        """The unit roundoff of the coarsest precision among what is differentiated."""
        return max(float(jnp.finfo(x.dtype).eps) for x in (*self.tangents, *self.cotangents))

    def flat(self, g: Callable) -> Callable[..., tuple]:
        """`g`, a function like f, as one of the active leaves, which gives the float and complex results.

        The other leaves are an argument too, because as constants they would let XLA compute in advance.
        """

        def function(active: Sequence[Any], others: Sequence[Any]) -> tuple:
            chosen, rest = iter(active), iter(others)
            leaves = [next(chosen if i in self.active else rest) for i in range(len(self.leaves))]
            results = jax.tree.leaves(g(*jax.tree.unflatten(self.tree, leaves)))
            return tuple(y for y in results if is_inexact(y))

        return function

    @property
    def others(self) -> tuple[Any, ...]:
        return tuple(x for i, x in enumerate(self.leaves) if i not in self.active)

    def arguments(self) -> str:
        """The arguments' types, such as `f32[32,64], f32[64]`."""
        return ", ".join(jax.typeof(jnp.asarray(x)).str_short(short_dtypes=True) for x in self.leaves)

    @functools.cached_property
    def argument_names(self) -> list[str]:
        """Of the active leaves, such as `params['w']`."""
        paths, _ = tree_flatten_with_path(jax.tree.unflatten(self.tree, range(len(self.leaves))))
        names = [_parameter(self.f, path[0].idx) + keystr(path[1:]) for path, _ in paths]
        return [names[i] for i in self.active]

    @functools.cached_property
    def result_names(self) -> list[str]:
        """Of the float and complex results, such as `result['loss']`."""
        shapes = jax.eval_shape(self.f, *jax.tree.unflatten(self.tree, self.leaves))
        return ["result" + keystr(path) for path, y in tree_flatten_with_path(shapes)[0] if is_inexact(y)]

    def leaf_names(self, stage: str) -> list[str]:
        """What a stage has results for: a VJP for the arguments, value and JVP for the results."""
        return self.argument_names if stage == "vjp" else self.result_names


def problem(f: Callable, args: tuple, seed: int) -> Problem:
    """Raises ArgumentError for arguments that are not arrays, NotDifferentiable where nothing is a float."""
    given, tree = jax.tree.flatten(args)
    leaves = tuple(map(_leaf, given))
    active = tuple(i for i, x in enumerate(leaves) if is_inexact(x))
    name = function_name(f)
    if not active:
        raise NotDifferentiable(
            f"{name} has no derivatives to compare: none of its arguments is a float or complex"
        )
    results = [
        y for y in jax.tree.leaves(jax.eval_shape(f, *jax.tree.unflatten(tree, leaves))) if is_inexact(y)
    ]
    if not results:
        raise NotDifferentiable(
            f"{name} has no derivatives to compare: none of its results is a float or complex"
        )
    rng = np.random.default_rng(seed)
    inputs = [jnp.asarray(leaves[i]) for i in active]
    tangents, cotangents, others = (
        tuple(normal(rng, x).astype(x.dtype) for x in arrays) for arrays in (inputs, results, inputs)
    )
    return Problem(name, f, args, tree, leaves, active, tangents, cotangents, others)


def plain_function(f: Callable) -> Callable:
    """The function behind a bridged one: the engines are to differentiate it, not one another."""
    if isinstance(f, types.MethodType):
        return types.MethodType(plain_function(f.__func__), f.__self__)
    return plain_function(f.__wrapped__) if isinstance(f, Bridged) else f


def checked_problem(f: Callable, args: tuple, seed: int) -> Problem:
    """JAX's complaints about a function come out in pybridge's words, where they are about tracing."""
    try:
        return problem(f, args, seed)
    except PyBridgeError:
        raise
    except Exception:
        trace(f)(*args)
        raise


def is_inexact(x: Any) -> bool:
    dtype = getattr(x, "dtype", None)
    return isinstance(x, float | complex) if dtype is None else jnp.issubdtype(dtype, jnp.inexact)


def _parameter(f: Callable, i: int) -> str:
    """The name of the parameter that takes the positional argument i."""
    try:
        parameters = list(inspect.signature(f).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    named = i < len(parameters) and parameters[i].kind in kinds
    return parameters[i].name if named else f"args[{i}]"


def _leaf(x: Any) -> Any:
    if isinstance(x, _NUMBERS):  # they promote differently from arrays, so they stay what they are
        return x
    try:
        array = jnp.asarray(x)
        return array if jnp.issubdtype(array.dtype, jax.dtypes.extended) else np.asarray(array)
    except TypeError:
        raise ArgumentError(
            f"an argument holds {type(x).__name__}, which is no array; close over it with functools.partial"
        ) from None
