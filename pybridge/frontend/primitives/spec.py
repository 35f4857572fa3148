"""What one primitive of Programs is on JAX's side."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jax import lax

from ...errors import UnsupportedPrimitive
from ..dimensions import to_dim


def no_attrs(eqn) -> dict[str, Any]:
    """For primitives without attributes: refuses the parameters that would change the result.

    Elementwise primitives of lax have two optional ones. `accuracy` is a wish that the most accurate of XLA's
    code be taken, for which there is but one kernel here, or a bound on errors, which nobody checks here. To
    `out_dtype`, a dtype, lowering converts the operands; with bool there is no arithmetic.
    """
    accuracy, out_dtype = (eqn.params.get(name) for name in ("accuracy", "out_dtype"))
    if isinstance(accuracy, lax.Tolerance):
        raise UnsupportedPrimitive(
            f"{eqn.primitive} with a bound on its errors ({_bounds(accuracy)})", primitive=str(eqn.primitive)
        )
    if out_dtype is not None and np.dtype(out_dtype) == bool:
        raise UnsupportedPrimitive(f"{eqn.primitive} with out_dtype=bool", primitive=str(eqn.primitive))
    return {}


def _bounds(accuracy: lax.Tolerance) -> str:
    return ", ".join(f"{name}={value}" for name, value in vars(accuracy).items() if value)


@dataclass(frozen=True)
class Spec:
    """One primitive of Programs, an operation of `ir.schema`.

    op: its name in Programs.
    emit: builds it from `jax.lax`: `emit(*operands, **attrs)`, one array or a sequence of them. Nested
        Programs arrive as functions from arrays to a tuple of arrays, whose `program` is the Program, and
        symbolic dimensions as numbers.
    read: the attributes of an equation of a jaxpr.
    lax: the names of the lax primitives that are read as this one; None means the name `op` itself.
    lower: for primitives with nested bodies, in place of `read`: `lower(lowering, eqn, inputs)` appends
        the equations and returns the resulting atoms.
    counts_checkpoints: `emit` also takes `depth`, the number of `remat`s that the equation is in.
    portable: in place of `emit` where that calls a platform's library.
    """

    op: str
    emit: Callable[..., Any]
    read: Callable[[Any], Mapping[str, Any]] = no_attrs
    lax: tuple[str, ...] | None = None
    lower: Callable[..., Any] | None = None
    counts_checkpoints: bool = False
    portable: Callable[..., Any] | None = None

    @property
    def lax_names(self) -> tuple[str, ...]:
        return (self.op,) if self.lax is None else self.lax


def integers(values) -> tuple[int, ...]:
    """Axes and the like, free of numpy's integers."""
    return tuple(int(v) for v in values)


def dims(values) -> tuple:
    """Sizes, which may be symbolic."""
    return tuple(map(to_dim, values))
