"""Programs called as the user's function is: arguments by position and name, pytrees in and out."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from inspect import Parameter
from typing import Any

import jax
from jax.tree_util import keystr, tree_flatten_with_path, treedef_tuple

from ..errors import ArgumentError
from ..ir.structure import Argument, Part, Result, Structure, unique


def structure_of_call(names: Sequence[str], args: tuple, kwargs: dict[str, Any], result: Any) -> Structure:
    """That of a function called so, by the names of its positional parameters; `result` is a JAX tree."""
    taken = set(kwargs)
    by_position = [
        Argument(unique(name, taken), jax.tree.structure(x)) for name, x in zip(names, args, strict=True)
    ]
    # JAX flattens a dict in the order of its keys.
    by_name = [Argument(name, jax.tree.structure(kwargs[name]), True) for name in sorted(kwargs)]
    return Structure((*by_position, *by_name), Part("result", result))


def result_tree(result: Result) -> Any:
    """The JAX tree of what a call gives."""
    return result.tree if isinstance(result, Part) else treedef_tuple(tuple(map(result_tree, result)))


def with_structure(structure: Structure, flat: Callable[..., Sequence[Any]], name: str) -> Callable[..., Any]:
    """`flat`, a function of a Program's inputs as arrays, as one of the user's arguments.

    Arguments that the function took by position may be given by name.
    """
    results = result_tree(structure.result)

    def call(*args, **kwargs):
        return jax.tree.unflatten(results, flat(*_leaves(structure, name, args, kwargs)))

    call.__name__ = call.__qualname__ = name or "program"
    if (signature := _signature(structure)) is not None:
        call.__dict__["__signature__"] = signature
    return call


def _signature(structure: Structure) -> inspect.Signature | None:
    """The signature that `inspect` reports; None where a keyword is not a valid name of a parameter."""
    kinds = {False: Parameter.POSITIONAL_OR_KEYWORD, True: Parameter.KEYWORD_ONLY}
    try:
        parameters = [Parameter(a.name, kinds[a.keyword]) for a in structure.arguments]
    except ValueError:
        return None
    return inspect.Signature(sorted(parameters, key=lambda p: p.kind))


def _leaves(structure: Structure, name: str, args: tuple, kwargs: dict[str, Any]) -> list[Any]:
    given = dict(kwargs)
    positional = [a.name for a in structure.arguments if not a.keyword]
    twice = [key for key in positional[: len(args)] if key in given]
    given.update(zip(positional, args, strict=False))
    wanted = [a.name for a in structure.arguments]
    if twice or len(args) > len(positional) or given.keys() != set(wanted):
        raise ArgumentError(_unfit(structure, name, len(args), list(kwargs)))
    leaves = []
    for argument in structure.arguments:
        found, tree = jax.tree.flatten(given[argument.name])
        if tree != argument.tree:
            raise ArgumentError(
                f"the argument {argument.name} of {name} has the structure {tree} where {argument.tree} "
                "is expected"
            )
        leaves += found
    return leaves


def _unfit(structure: Structure, name: str, count: int, keywords: list[str]) -> str:
    arguments = ", ".join(f"{a.name}=" if a.keyword else a.name for a in structure.arguments)
    by_name = f" and {', '.join(keywords)} by name" if keywords else ""
    return (
        f"{name} takes the arguments {arguments or 'of none'}, of the structure that was traced; it got "
        f"{count} by position{by_name}"
    )


def labels(structure: Structure) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of the inputs and of the outputs, each with its path in its part: `params['w']`."""
    inputs = (label for part in structure.arguments for label in _labels(part))
    return tuple(inputs), tuple(label for part in structure.results for label in _labels(part))


def _labels(part: Part) -> list[str]:
    count = part.tree.num_leaves
    try:
        paths = [path for path, _ in tree_flatten_with_path(jax.tree.unflatten(part.tree, range(count)))[0]]
        words = [keystr(path) for path in paths]
    except Exception:  # the user's class, which does not take numbers for its parts
        words = []
    if len(words) != count:
        words = [f"[{i}]" for i in range(count)]
    return [" ".join(f"{part.name}{word}".split()) for word in words]
