"""What commands are given: a function with example arguments, lists of numbers and of words."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

from ..errors import UnknownOption

if TYPE_CHECKING:
    from ..ir.program import Program


def words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


class Static(TypedDict, total=False):
    static_argnums: list[int]
    static_argnames: list[str]


class Example(NamedTuple):
    """A function with arguments to trace it with, and which of them are static."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    static: Static

    def program(self) -> Program:
        from ..frontend.tracing import trace

        return trace(self.function, **self.static)(*self.arguments)


@contextlib.contextmanager
def example_of(
    function: str,
    arguments: list[str] | None,
    seed: int,
    argnums: str | None,
    argnames: str | None,
    symbolic: bool = False,
) -> Iterator[Example]:
    """Of a command's arguments and options; in the context JAX has the dtypes that they ask for."""
    from .arguments import example_arguments  # with numpy, which `--help` does without

    with example_arguments(function, arguments or [], seed, symbolic) as (f, args):
        yield Example(f, args, static_options(argnums, argnames))


@contextlib.contextmanager
def program_of(
    function: str, arguments: list[str] | None, seed: int, argnums: str | None, argnames: str | None
) -> Iterator[Program]:
    """The Program in the archive of that name, or that of a function as `example_of` has it."""
    if ":" in function or function.endswith(".py"):
        with example_of(function, arguments, seed, argnums, argnames, symbolic=True) as example:
            yield example.program()
        return
    if not Path(function).is_file():
        raise UnknownOption(
            f"there is no archive {function}; a function is module:function or path/to/file.py:function"
        )
    if arguments:
        raise UnknownOption(f"{function} is an archive, whose Program takes no arguments to be made")
    from ..runtime.archives import load

    yield load(function)


def static_options(argnums: str | None, argnames: str | None) -> Static:
    """The two options as `bridge` takes them, where they are given."""
    given: Static = {}
    if argnums is not None:
        given["static_argnums"] = numbers(argnums, "--static-argnums")
    if argnames is not None:
        given["static_argnames"] = words(argnames)
    return given


def numbers(text: str, option: str) -> list[int]:
    if not re.fullmatch(r"\s*-?\d+(\s*,\s*-?\d+)*\s*", text):
        raise UnknownOption(f"{option} takes numbers such as 1,-1, not {text!r}")
    return list(map(int, words(text)))
