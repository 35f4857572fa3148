"""Engine `transpose`: derivative Programs made in Julia by JVP rules and transposition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import PyBridgeError
from ..ir.program import Program
from ..runtime import julia
from ..runtime.julia_call import call
from .engine import Engine, Options


def _apply(program: Program, arrays: Sequence[Any], options: Options) -> Sequence[Any]:
    return call(program, *arrays, execute=options.execute, explain=options.explain, guard=options.guard)


def _unavailable() -> PyBridgeError | None:
    try:
        julia.installation()
    except PyBridgeError as missing:
        return missing
    return None


ENGINE = Engine("transpose", _apply, _unavailable, ("xla", "julia"), reverses_loops=True)
