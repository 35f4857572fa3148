"""The memory of a gradient: what its two halves hand on, and what the whole of it takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax

from ..runtime import native
from ._rows import Memory


@dataclass(frozen=True, eq=False)
class Jitted:
    """A jitted function, and its arguments on the device."""

    function: Any
    arguments: tuple

    def __call__(self) -> Any:
        return self.function(*self.arguments)


def memory(flat: Callable[..., tuple], vjp: Jitted) -> Memory:
    """flat: the function, of the active leaves and the others; vjp: of these and the cotangents."""
    point, others, _ = vjp.arguments
    return Memory(_attempt(lambda: _residuals(flat, point, others)), _attempt(lambda: _whole(vjp)))


def _residuals(flat: Callable[..., tuple], point: tuple, others: tuple) -> int:
    """Each array counts once, however often it is kept."""

    def forward(xs: tuple, rest: tuple) -> Any:
        return jax.vjp(lambda *active: flat(active, rest), *xs)[1]

    jaxpr = jax.make_jaxpr(forward)(point, others)
    kept = {id(v): v.aval for v in getattr(jaxpr, "jaxpr", jaxpr).outvars if not hasattr(v, "val")}
    return sum(aval.size * aval.dtype.itemsize for aval in kept.values())


def _whole(vjp: Jitted) -> int:
    return native.memory(vjp.function.lower(*vjp.arguments).compile())


def _attempt(count: Callable[[], int]) -> int | None:
    try:
        return count()
    except Exception:  # a platform without such an analysis, a pullback that is no tree of arrays
        return None
