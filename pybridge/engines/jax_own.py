"""Engine `jax`: the Program as lax operations, differentiated by JAX itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..frontend.emission import to_jax
from ..ir.program import Program
from .engine import Engine, Options


def _apply(program: Program, arrays: Sequence[Any], options: Options) -> Sequence[Any]:
    return to_jax(program, portable=options.execute == "portable")(*arrays)


ENGINE = Engine("jax", _apply, lambda: None, ("xla",))
