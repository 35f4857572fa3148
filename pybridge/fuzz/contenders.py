"""The engines that are to be fuzzed, by the names that the command line has for them."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..engines import ENGINES, Engine, Options
from ..errors import EngineUnavailable, UnknownOption
from ..ir.program import Program

BASELINE = "jax"


def contenders(names: Iterable[str]) -> list[str]:
    """Each engine once for each way in which it executes: `transpose` is transpose/xla and transpose/julia.

    A name with a colon is that of somebody's own engine, `module:attribute`.
    Raises UnknownOption for what is no engine, EngineUnavailable where one cannot work here.
    """
    found: dict[str, None] = {}
    for name in names:
        plain, _, execute = name.partition("/")
        engine = find(plain)
        missing = engine.unavailable()
        if missing is not None:
            raise missing if isinstance(missing, Exception) else EngineUnavailable(str(missing))
        if execute and execute not in engine.executes:
            raise UnknownOption(f"{plain} executes by {', '.join(engine.executes)}, not by {execute!r}")
        several = len(engine.executes) > 1
        chosen = [execute] if execute else engine.executes
        found |= dict.fromkeys(f"{plain}/{way}" if several else plain for way in chosen)
    return list(found)


def find(name: str) -> Engine:
    """The engine of that name, without the way in which it executes."""
    if ":" not in name:
        if name not in ENGINES:
            known = ", ".join(map(repr, ENGINES))
            raise UnknownOption(f"there is no engine {name!r}; there are {known}, and module:attribute")
        return ENGINES[name]
    module, _, attribute = name.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise UnknownOption(f"{name} is no engine: {error}") from None


def function(contender: str, program: Program) -> Callable[..., Sequence[Any]]:
    """The Program as a function of arrays, differentiable by that engine."""
    name, _, execute = contender.partition("/")
    engine = find(name)
    options = Options(execute or engine.executes[0])
    return lambda *arrays: engine.apply(program, arrays, options)
