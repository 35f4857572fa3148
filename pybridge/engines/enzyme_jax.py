"""Engine `enzyme-jax`: the PyPI package enzyme-ad, Enzyme on StableHLO. First order, under jit, no vmap."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import Any

import jax

from ..distribution import NAME
from ..errors import EngineUnavailable, PyBridgeError
from ..frontend.emission import to_jax
from ..ir.program import Program
from .engine import Engine, Options


def _apply(program: Program, arrays: Sequence[Any], options: Options) -> Sequence[Any]:
    from enzyme_ad.jax import enzyme_jax_ir

    return jax.jit(enzyme_jax_ir()(to_jax(program)))(*arrays)


def _unavailable() -> PyBridgeError | None:
    if importlib.util.find_spec("enzyme_ad") is None:
        return EngineUnavailable(
            f"the package enzyme-ad is not installed: `pip install '{NAME}[enzyme-jax]'` (Python 3.11 only)"
        )
    return None


ENGINE = Engine("enzyme-jax", _apply, _unavailable, ("xla",), orders=1)
