"""How pybridge's primitives run where nothing is traced: compiled, as they have no other implementation."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import jax


def run(primitive: Any, operands: Sequence[Any], **params: Any) -> list[Any]:
    """The results of a primitive with several; `params` are hashable."""
    compiled = _compiled(primitive, tuple(sorted(params.items())))
    if not jax.config.jax_disable_jit:
        return list(compiled(*operands))
    with jax.disable_jit(False):  # or JAX would come back here with the same arrays
        return list(compiled(*operands))


@functools.lru_cache(maxsize=1024)
def _compiled(primitive: Any, params: tuple[tuple[str, Any], ...]):
    return jax.jit(functools.partial(primitive.bind, **dict(params)))
