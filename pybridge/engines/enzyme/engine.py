"""Engine `enzyme`: native code differentiated by Enzyme.jl. On the CPU, with Julia 1.10 or newer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import EngineUnavailable, PyBridgeError
from ...ir.program import Program
from ...runtime import julia
from ..engine import Engine, Options
from .call import call

OLDEST = (1, 10)


def _apply(program: Program, arrays: Sequence[Any], options: Options) -> Sequence[Any]:
    return call(program, *arrays)


def _unavailable() -> PyBridgeError | None:
    found = julia.find()
    running = julia.status().julia or found.julia
    if running is None:
        return found.error
    if running.release < OLDEST:
        return EngineUnavailable(
            f'engine="enzyme" needs Julia 1.10 or newer, and this is {running.version}: '
            "set PYBRIDGE_JULIA to a newer one"
        )
    if running.enzyme is None:
        return EngineUnavailable(
            "Enzyme.jl is not in Julia's environment: `julia -e 'import Pkg; Pkg.add(\"Enzyme\")'`"
        )
    return None


ENGINE = Engine("enzyme", _apply, _unavailable, ("julia",))
