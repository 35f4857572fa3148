"""The names of functions: those that are shown, and those by which pickle finds them.

pickle stores a function as its module and qualified name, and refuses one that it does not find there;
cloudpickle stores the code instead of a lambda and of a function of `__main__` or inside another one.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass
from inspect import Parameter
from typing import Any


def function_name(f: Any) -> str:
    """The function's name; of an object without one its class's."""
    while isinstance(f, functools.partial):
        f = f.func
    return getattr(f, "__name__", type(f).__name__)


def argument_names(f: Callable, count: int) -> list[str]:
    """The names of the parameters that `count` positional arguments are for."""
    try:
        parameters = list(inspect.signature(f).parameters.values())
    except (TypeError, ValueError):
        return [f"x{i}" for i in range(count)]
    kinds = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    names = [p.name for p in parameters if p.kind in kinds][:count]
    rest = next((p.name for p in parameters if p.kind is Parameter.VAR_POSITIONAL), "x")
    return names + [f"{rest}_{i}" for i in range(count - len(names))]


def named(module: str | None, path: str) -> Any:
    """What `path`, words with dots between, leads to in a module that is imported; None where nothing is."""
    found: Any = sys.modules.get(module or "")
    for word in path.split("."):
        found = getattr(found, word, None)
    return found


def findable(f: Any) -> Any:
    """`f`, so that pickle finds it where it is: as itself, or behind the decorators' `__wrapped__`.

    A function whose name leads to what decorates it is given the name that leads to the function. So pickle
    stores this name, and cloudpickle still chooses between it and the code. Other objects with a name,
    such as what `jax.jit` makes, go as their place in the module, which pickle would not look for.
    """
    path = path_to(f)
    if path is None:
        return f
    if isinstance(f, types.FunctionType):
        f.__qualname__ = path
        return f
    return f if f.__module__ == "__main__" else _Imported(f.__module__, path)


def path_to(f: Any) -> str | None:
    """What leads to `f` in its module: its qualified name, or that with `__wrapped__` behind it."""
    path = getattr(f, "__qualname__", "")
    found = named(getattr(f, "__module__", None), path)
    while found is not f and found is not None:
        found, path = getattr(found, "__wrapped__", None), f"{path}.__wrapped__"
    return None if found is None else path


@dataclass(frozen=True)
class _Imported:
    """Is read from a pickle as what it stands for."""

    module: str
    path: str

    def __reduce__(self) -> Any:
        return _imported, (self.module, self.path)


def _imported(module: str, path: str) -> Any:
    found: Any = importlib.import_module(module)
    for word in path.split("."):
        found = getattr(found, word)
    return found
