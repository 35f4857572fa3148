"""What JAX knows of a function that `jax.jit` made."""

from __future__ import annotations

import functools
from typing import Any

import jax


@functools.cache
def _class_of_jitted() -> type:
    return type(jax.jit(lambda: None))


def static_arguments(f: Any) -> tuple[tuple[int, ...], tuple[str, ...]] | None:
    """The positions and the names of a jitted function's static arguments; None for other functions.

    They are in what it is pickled as. JAX has added to each what follows from the other.
    """
    if not isinstance(f, _class_of_jitted()):
        return None
    state: Any = f.__getstate__()
    return tuple(state["static_argnums"]), tuple(state["static_argnames"])
