"""Engine `enzyme`: native code differentiated by Enzyme.jl. On the CPU, with Julia 1.10 or newer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import EngineUnavailable, PyBridgeError
from ...ir.program import Program
from ...runtime import julia
from ...runtime.julia.probe import ENZYME_OLDEST
from ..engine import Engine, Options


def _apply(program: Program, arrays: Sequence[Any], options: Options) -> Sequence[Any]:
    from .call import call  # here, because every process imports the engines, and few use this one

    return call(program, *arrays)


def _unavailable() -> PyBridgeError | None:
    try:
        running = julia.installation()
    except PyBridgeError as missing:
        return missing
    if running.release < ENZYME_OLDEST:
        return EngineUnavailable(
            f'engine="enzyme" needs Julia 1.10 or newer, and this is {running.version}: '
            "set PYBRIDGE_JULIA to a newer one"
        )
    if running.enzyme is None:
        return EngineUnavailable("Enzyme.jl is not in Julia's environment: `pybridge setup --enzyme`")
    return None


ENGINE = Engine("enzyme", _apply, _unavailable, ("julia",))
