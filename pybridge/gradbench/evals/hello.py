"""The square of a number, and its derivative."""

from __future__ import annotations

import jax

from ..function import Bridge, Function, Operands, plain
from ..inputs import Input


def square(x: jax.Array) -> jax.Array:
    return x * x


def _read(value: Input) -> Operands:
    return Operands((value.number(),))


def functions(bridge: Bridge) -> dict[str, Function]:
    bridged = bridge(square)
    return {
        "square": Function(bridged, _read, plain),
        "double": Function(jax.grad(bridged), _read, plain),
    }
