"""The engines as candidates."""

from __future__ import annotations

from collections.abc import Callable

import jax

from ..api.bridge import bridge
from ._measure import Candidate

BASELINE = "jax"
CAN_END_THE_PROCESS = frozenset({"enzyme-jax"})  # by signals or exit, where others raise


def candidate(engine: str, f: Callable) -> Candidate:
    """`f` with that engine's derivatives; JAX itself takes it as it is."""
    if engine == BASELINE:
        return Candidate(engine, f)
    bridged = bridge(f, engine=engine)

    def warm_up():
        return jax.jit(jax.grad(bridge(lambda x: x * x, engine=engine)))(1.0)

    return Candidate(engine, bridged, warm_up)
