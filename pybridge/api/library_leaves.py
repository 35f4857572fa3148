"""The user's function as one of the leaves of its arguments, which are the arguments of C functions."""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from ..errors import ArgumentError, NotDifferentiable, UnknownOption
from ..frontend.names import argument_names, function_name
from ..frontend.structures import result_tree, with_structure
from ..frontend.tracing import trace
from ..ir.numerals import DTYPES, dtype_name
from ..ir.program import Program
from ..ir.types import TensorType
from ..runtime.julia_call import call
from .bridge import bridge
from .library_names import path_name

Argnums = int | Sequence[int] | None


@dataclass(frozen=True)
class Parameter:
    """An array that a function of C takes or gives.

    name: in C. python: where it is in the function's arguments or result, `params['w']`.
    """

    name: str
    type: TensorType
    role: str
    python: str

    @property
    def size(self) -> int:
        """The number of its elements."""
        return math.prod(n for n in self.type.shape if isinstance(n, int))


@dataclass(frozen=True)
class Flat:
    """The user's function, of the leaves of its arguments and with a list of leaves as its result.

    active: the places of the leaves by which it is differentiated.
    """

    name: str
    call: Callable[..., list[Any]]
    arguments: tuple[Parameter, ...]
    results: tuple[Parameter, ...]
    active: tuple[int, ...]

    @property
    def by(self) -> list[Parameter]:
        """What it is differentiated by."""
        return [self.arguments[i] for i in self.active]

    def of_active(self, xs: Sequence[Any]) -> Callable[..., list[Any]]:
        """The function of the active leaves, the others being those of `xs`."""

        def of(*moved):
            given = dict(zip(self.active, moved, strict=True))
            return self.call(*(given.get(i, x) for i, x in enumerate(xs)))

        return of

    def number(self, xs: Sequence[Any]) -> Callable[..., Any]:
        """The same, as a function whose result is a number."""
        return lambda *moved: self.of_active(xs)(*moved)[0]


def flattened(
    f: Callable | Program, args: tuple, kwargs: dict[str, Any], argnums: Argnums, **options
) -> Flat:
    """`f` for arguments of these shapes and dtypes; `options` are those of `bridge`."""
    if isinstance(f, Program):
        if f.structure is None:
            return _of_inputs(f, args, kwargs, argnums)
        args, kwargs = (args, kwargs) if args or kwargs else _arguments_of(f)
        f = with_structure(f.structure, functools.partial(_called, f), f.name)
    chosen = _chosen(argnums, len(args))
    bridged = bridge(f, **options)
    dynamic, named, fixed = bridged.static_arguments.split(args, kwargs)
    places = sorted(set(range(len(args))) - fixed.positions)
    function, tree = fixed.into(bridged), jax.tree.structure((dynamic, named))

    def whole(*leaves):
        positional, by_name = jax.tree.unflatten(tree, leaves)
        return function(*positional, **by_name)

    whole.__name__ = function_name(f)
    arguments = _arguments(f, args, (dynamic, named), places)
    results = _results(trace(whole)(*(struct(p.type) for p, _ in arguments)))
    return _flat(whole.__name__, lambda *xs: jax.tree.leaves(whole(*xs)), arguments, results, chosen)


_Placed = list[tuple[Parameter, int | None]]


def _arguments(f: Callable, args: tuple, dynamic: tuple, places: list[int]) -> _Placed:
    """The leaves, each with the position of its argument; None for those passed by name."""
    names = argument_names(f, len(args))
    found: _Placed = []
    for (side, key, *rest), leaf in jax.tree_util.tree_flatten_with_path(dynamic)[0]:
        position = places[key.idx] if side.idx == 0 else None
        start = str(key.key) if position is None else names[position]
        python = start + jax.tree_util.keystr(tuple(rest))
        found.append((Parameter(path_name(start, rest), _type(leaf, python), "argument", python), position))
    return found


def _results(program: Program) -> list[Parameter]:
    assert program.structure is not None
    tree = result_tree(program.structure.result)
    paths = jax.tree_util.tree_flatten_with_path(jax.tree.unflatten(tree, range(tree.num_leaves)))[0]
    return [
        Parameter(path_name("value", path), type_, "value", f"result{jax.tree_util.keystr(path)}")
        for (path, _), type_ in zip(paths, program.output_types, strict=True)
    ]


def _arguments_of(program: Program) -> tuple[tuple, dict[str, Any]]:
    """Arguments of a Program's types, by position and by name."""
    assert program.structure is not None
    leaves = map(struct, program.input_types)
    named = [
        (a, jax.tree.unflatten(a.tree, itertools.islice(leaves, a.tree.num_leaves)))
        for a in program.structure.arguments
    ]
    return tuple(x for a, x in named if not a.keyword), {a.name: x for a, x in named if a.keyword}


def _called(program: Program, *xs: Any) -> list[Any]:
    if [_type(x, f"x{i}") for i, x in enumerate(xs)] != list(program.input_types):
        raise ArgumentError(f"{program.name} takes {', '.join(map(str, program.input_types))}")
    return call(program, *xs)


def _of_inputs(program: Program, args: tuple, kwargs: dict[str, Any], argnums: Argnums) -> Flat:
    """Of a Program that knows no arguments, a text's for instance: its inputs are x0, x1 and so on."""
    if kwargs:
        raise ArgumentError(f"the inputs of {program.name} have no names")
    given = args or tuple(map(struct, program.input_types))
    chosen = _chosen(argnums, len(given))
    types = [_type(x, f"x{i}") for i, x in enumerate(given)]
    arguments: _Placed = [(Parameter(f"x{i}", t, "argument", f"x{i}"), i) for i, t in enumerate(types)]
    count = len(program.outputs)
    names = ["value"] if count == 1 else [f"value_{i}" for i in range(count)]
    results = [Parameter(n, t, "value", n) for n, t in zip(names, program.output_types, strict=True)]
    return _flat(program.name, functools.partial(_called, program), arguments, results, chosen)


def _flat(
    name: str, of_leaves: Callable, arguments: _Placed, results: list[Parameter], chosen: set[int] | None
) -> Flat:
    if chosen is None:
        active = [i for i, (p, _) in enumerate(arguments) if p.type.inexact]
    else:
        active = [i for i, (_, position) in enumerate(arguments) if position in chosen]
    parameters = tuple(p for p, _ in arguments)
    for i in active:
        if not parameters[i].type.inexact:
            p = parameters[i]
            raise NotDifferentiable(f"argnums has {p.python}, which is {p.type}, no float")
    return Flat(name, of_leaves, parameters, tuple(results), tuple(active))


def _chosen(argnums: Argnums, count: int) -> set[int] | None:
    if argnums is None:
        return None
    given = tuple(argnums) if isinstance(argnums, Iterable) else (argnums,)
    if not all(hasattr(n, "__index__") and not isinstance(n, bool) for n in given):
        raise UnknownOption(f"argnums must be the positions of arguments, got {argnums!r}")
    places = [operator.index(n) for n in given]
    for n in places:
        if not -count <= n < count:
            raise UnknownOption(f"argnums has {n}, and there are {count} positional arguments")
    return {n % count for n in places}


def wants_x64(f: Callable | Program, arguments: Any) -> bool:
    """Whether an input has a dtype of 64 bits, which JAX has only if it is told so."""
    leaves = [leaf for leaf in jax.tree.leaves(arguments) if hasattr(leaf, "dtype")]
    names = [dtype_name(leaf.dtype) for leaf in leaves]
    if isinstance(f, Program):
        names += [type_.dtype for type_ in f.input_types]
    return not {"f64", "i64", "u64", "c128"}.isdisjoint(names)


def _type(leaf: Any, python: str) -> TensorType:
    try:
        array = leaf if hasattr(leaf, "dtype") and hasattr(leaf, "shape") else jnp.asarray(leaf)
    except (TypeError, ValueError):
        raise ArgumentError(
            f"{python}, of type {type(leaf).__name__}, is not an array; name the argument in static_argnums "
            "or static_argnames if it is to be known when the library is made"
        ) from None
    name = dtype_name(array.dtype)
    if name is None:
        raise ArgumentError(f"{python} has the dtype {array.dtype}, for which C has no type")
    if not all(isinstance(n, int) for n in array.shape):
        raise ArgumentError(_SYMBOLIC.format(python))
    return TensorType(name, tuple(int(n) for n in array.shape))


_SYMBOLIC = "{} has symbolic dimensions, and a library is compiled for concrete shapes"


def struct(type_: TensorType) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(type_.shape, DTYPES[type_.dtype])
