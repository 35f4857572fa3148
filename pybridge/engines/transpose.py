"""Engine `transpose`: derivative Programs made in Julia by JVP rules and transposition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import julia
from ..errors import PyBridgeError
from ..primitive import call
from ..program import Program
from .engine import Engine, Options


def _apply(program: Program, arrays: Sequence[Any], options: Options) -> Sequence[Any]:
    return call(program, *arrays, execute=options.execute, explain=options.explain)


def _unavailable() -> PyBridgeError | None:
    return None if julia.status().started else julia.find().error


ENGINE = Engine("transpose", _apply, _unavailable, ("xla", "julia"))
