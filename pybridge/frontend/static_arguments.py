"""Static arguments: those that are Python values, known when a function is traced, and not arrays.

`static_argnums` and `static_argnames` mean what they mean to `jax.jit`. With one of the two given, the
parameters that it tells of are static whether they are passed by position or by keyword. With both given, the
first tells which arguments passed by position are static, the second which passed by keyword. Negative
positions count from the last positional parameter; in functions with `*args`, from the last of the call's
positional arguments.
"""

from __future__ import annotations

import inspect
import operator
import types
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from inspect import Parameter
from typing import Any

import jax

from ..errors import ArgumentError, UnknownOption
from .adapter import jitted
from .names import function_name

Argnums = int | Sequence[int] | None
Argnames = str | Iterable[str] | None


@dataclass(frozen=True)
class StaticArguments:
    """positions: of arguments passed by position; a negative one counts from the end of the call's.

    names: of arguments passed by keyword.
    """

    positions: tuple[int, ...] = ()
    names: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.positions or self.names)

    def split(self, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any], Fixed]:
        """The arguments that are not static, and those that are. Raises ArgumentError for unhashable ones."""
        if not self:
            return args, kwargs, NONE
        count = len(args)
        places = {n % count for n in self.positions if -count <= n < count}
        names = self.names.intersection(kwargs)
        fixed = Fixed(
            tuple((i, _Value(args[i], f"argument {i}")) for i in sorted(places)),
            tuple((name, _Value(kwargs[name], f"argument {name}")) for name in sorted(names)),
        )
        dynamic = tuple(x for i, x in enumerate(args) if i not in places)
        return dynamic, {name: x for name, x in kwargs.items() if name not in names}, fixed


NO_STATIC = StaticArguments()


@dataclass(frozen=True)
class Fixed:
    """The static arguments of one call, by position and by name; equal for calls that trace alike."""

    positional: tuple[tuple[int, _Value], ...]
    named: tuple[tuple[str, _Value], ...]

    @property
    def positions(self) -> set[int]:
        return {i for i, _ in self.positional}

    def into(self, f: Callable) -> Callable:
        """`f` as a function of the other arguments, with the same name."""
        if not self.positional and not self.named:
            return f
        placed = {i: value.value for i, value in self.positional}
        named = {name: value.value for name, value in self.named}

        def closed(*dynamic, **kwargs):
            rest = iter(dynamic)
            count = len(dynamic) + len(placed)
            return f(*(placed[i] if i in placed else next(rest) for i in range(count)), **kwargs, **named)

        closed.__name__ = function_name(f)
        return closed


NONE = Fixed((), ())


class _Value:
    """A static value, told apart from what Python takes for equal: 1, 1.0 and True; 0.0 and -0.0."""

    __slots__ = ("key", "value")

    def __init__(self, value: Any, what: str):
        self.value, self.key = value, _key(value)
        try:
            hash(self.key)
        except TypeError:
            raise ArgumentError(_unhashable(value, what)) from None

    def __eq__(self, other: object) -> bool:
        return self.key == other.key if isinstance(other, _Value) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.key)


def _key(value: Any) -> Any:
    if isinstance(value, tuple):
        return (type(value), *map(_key, value))
    return (type(value), repr(value) if type(value) in (float, complex) else value)


def _unhashable(value: Any, what: str) -> str:
    if isinstance(value, jax.core.Tracer):
        return (
            f"{what} is static, and here it is an array that JAX traces: mark it as static in the "
            "transformation around, too, or close over its value"
        )
    return (
        f"{what} is static, by static_argnums or static_argnames, and must be hashable; "
        f"a {type(value).__name__} is not"
    )


def static_arguments(f: Callable, argnums: Argnums = None, argnames: Argnames = None) -> StaticArguments:
    """Which arguments of `f` the two options make static; without either, those of a bridged or jitted
    function.

    Raises UnknownOption for what is neither a position nor a name, or not one of a parameter of `f`.
    """
    if argnums is None and argnames is None:
        return _own(f)
    positions, names = _positions(argnums), _names(argnames)
    parameters = _parameters(f)
    if parameters is None:
        return static_options(argnums, argnames)
    if positions is not None:
        positions = _from_the_front(positions, parameters)
    if names is not None:
        _check_names(names, parameters)
    both = [(i, p.name) for i, p in enumerate(parameters) if p.kind is Parameter.POSITIONAL_OR_KEYWORD]
    if positions is None:
        positions = tuple(i for i, name in both if names and name in names)
    elif names is None:
        names = frozenset(name for i, name in both if i in positions)
    return StaticArguments(positions, names or frozenset())


def static_options(argnums: Argnums = None, argnames: Argnames = None) -> StaticArguments:
    """What the two options say of a function whose parameters are not known. Raises UnknownOption."""
    return StaticArguments(_positions(argnums) or (), _names(argnames) or frozenset())


def _own(f: Any) -> StaticArguments:
    method = isinstance(f, types.MethodType)
    function = f.__func__ if method else f
    of_jit = jitted.static_arguments(function)
    if of_jit is not None:
        static: Any = StaticArguments(of_jit[0], frozenset(of_jit[1]))
    else:
        static = getattr(function, "static_arguments", None)
    if not isinstance(static, StaticArguments):
        return StaticArguments()
    if not method:
        return static
    return StaticArguments(tuple(n - (n > 0) for n in static.positions if n != 0), static.names)


def _positions(argnums: Any) -> tuple[int, ...] | None:
    if argnums is None:
        return None
    given = tuple(argnums) if isinstance(argnums, Iterable) else (argnums,)
    if not all(hasattr(n, "__index__") and not isinstance(n, bool) for n in given):
        raise UnknownOption(f"static_argnums must be the positions of arguments, got {argnums!r}")
    return tuple(map(operator.index, given))


def _names(argnames: Any) -> frozenset[str] | None:
    if argnames is None:
        return None
    several = isinstance(argnames, Iterable) and not isinstance(argnames, str)
    given = tuple(argnames) if several else (argnames,)
    if not all(isinstance(name, str) for name in given):
        raise UnknownOption(f"static_argnames must be the names of arguments, got {argnames!r}")
    return frozenset(given)


def _parameters(f: Callable) -> list[Parameter] | None:
    """Those of the signature; None where there is none, as of some functions written in C."""
    try:
        return list(inspect.signature(f).parameters.values())
    except (TypeError, ValueError):
        return None


def _from_the_front(positions: tuple[int, ...], parameters: list[Parameter]) -> tuple[int, ...]:
    """The positions counted from the first parameter, where their number is known."""
    if any(p.kind is Parameter.VAR_POSITIONAL for p in parameters):
        return positions
    kinds = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    placed = [p.name for p in parameters if p.kind in kinds]
    for n in positions:
        if not -len(placed) <= n < len(placed):
            there = f"which are {', '.join(placed)}" if placed else "of which it has none"
            raise UnknownOption(
                f"static_argnums has {n}, and the function has no such positional parameter, {there}"
            )
    return tuple(n % len(placed) for n in positions)


def _check_names(names: frozenset[str], parameters: list[Parameter]) -> None:
    kinds = {p.name: p.kind for p in parameters}
    for name in sorted(names):
        if kinds.get(name) in (Parameter.POSITIONAL_ONLY, Parameter.VAR_POSITIONAL):
            raise UnknownOption(
                f"static_argnames has {name!r}, which is passed by position alone: use static_argnums"
            )
        if name not in kinds and Parameter.VAR_KEYWORD not in kinds.values():
            raise UnknownOption(
                f"static_argnames has {name!r}, and the parameters are {', '.join(kinds) or 'none'}"
            )
