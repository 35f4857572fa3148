"""The tool: evals' functions, compiled, run as often as is asked, and timed."""

from __future__ import annotations

import functools
import importlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax

from .. import distribution
from ..api.bridge import bridge
from ..errors import UnknownOption
from .evals import NAMES
from .function import Function, compile_function
from .inputs import Input
from .protocol import Response, Timings


@dataclass(frozen=True)
class Tool:
    """Answers of pybridge, with an engine and an execute mode of `pb.bridge`; both are checked here."""

    engine: str = "transpose"
    execute: str = "auto"

    def __post_init__(self) -> None:
        bridge(abs, engine=self.engine, execute=self.execute)

    def describe(self) -> Response:
        versions = {"pybridge": distribution.version(), "jax": jax.__version__}
        return {"tool": "pybridge", "config": {"engine": self.engine, "execute": self.execute, **versions}}

    def define(self, module: str) -> Timings:
        start = time.perf_counter_ns()
        self._functions(module)
        return [_timing("load", start)]

    def evaluate(self, module: str, function: str, value: Input) -> tuple[Any, Timings]:
        functions = self._functions(module)
        if function not in functions:
            raise UnknownOption(f"{module} has no function {function!r}; it has {', '.join(functions)}")
        chosen: Function = functions[function]
        least, seconds = _runs(value)
        operands = chosen.read(value)
        with jax.enable_x64(True):
            start = time.perf_counter_ns()
            run = compile_function(chosen, operands)
            compiling = _timing("compile", start)
            result, evaluations = _repeat(run, least, seconds)
            return chosen.write(result), [compiling, *evaluations]

    def _functions(self, module: str) -> dict[str, Function]:
        if module not in NAMES:
            raise UnknownOption(f"there is no module {module!r}; there are {', '.join(NAMES)}")
        return _load(module, self)


@functools.cache
def _load(module: str, tool: Tool) -> dict[str, Function]:
    chosen = functools.partial(bridge, engine=tool.engine, execute=tool.execute)
    return importlib.import_module(f"{__package__}.evals.{module}").functions(chosen)


def _runs(value: Input) -> tuple[int, float]:
    """How often at least, and for how many seconds at least; only `hello` does not say so."""
    least = value.at("min_runs").integer(at_least=0) if "min_runs" in value else 1
    return max(least, 1), value.at("min_seconds").number() if "min_seconds" in value else 0.0


def _repeat(run: Callable[[], Any], least: int, seconds: float) -> tuple[Any, Timings]:
    timings: Timings = []
    elapsed = 0
    while len(timings) < least or elapsed < 1e9 * seconds:
        start = time.perf_counter_ns()
        result = run()
        timings.append(_timing("evaluate", start))
        elapsed += timings[-1]["nanoseconds"]
    return result, timings


def _timing(name: str, start: int) -> dict[str, Any]:
    return {"name": name, "nanoseconds": time.perf_counter_ns() - start}
