"""Primitives that read and write at places computed at run time."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import lax

from ...errors import UnsupportedPrimitive
from .applying import applies_function, lower_applied
from .spec import Spec, dims, integers

_MODES = {
    "clip": lax.GatherScatterMode.CLIP,
    "fill": lax.GatherScatterMode.FILL_OR_DROP,
    "promise": lax.GatherScatterMode.PROMISE_IN_BOUNDS,
}
_MODE_NAMES = {mode: name for name, mode in _MODES.items()}

_GATHER_DIMS = (
    "offset_dims",
    "collapsed_slice_dims",
    "start_index_map",
    "operand_batching_dims",
    "start_indices_batching_dims",
)
_SCATTER_DIMS = (
    "update_window_dims",
    "inserted_window_dims",
    "scatter_dims_to_operand_dims",
    "operand_batching_dims",
    "scatter_indices_batching_dims",
)


def _mode(eqn) -> str:
    mode = lax.GatherScatterMode.from_any(eqn.params["mode"])
    if mode not in _MODE_NAMES:
        raise UnsupportedPrimitive(f"{eqn.primitive} with mode={mode}", primitive=str(eqn.primitive))
    return _MODE_NAMES[mode]


def _fill_value(value, dtype):
    """A number or None. A number of the operand's dtype; a complex one only where it is real."""
    if value is None:
        return None
    if not jnp.issubdtype(dtype, np.inexact):
        return np.asarray(value).astype(dtype).item()
    if isinstance(value, bool | int | float):
        return value
    number = value.item() if hasattr(value, "item") else value
    if isinstance(number, complex):
        if number.imag != 0:
            raise UnsupportedPrimitive("gather with a fill_value that is not real", primitive="gather")
        return number.real
    return number


def _dynamic_slice(x, *starts, sizes):
    return lax.dynamic_slice(x, _as_they_are(starts), sizes, allow_negative_indices=False)


def _dynamic_update_slice(x, update, *starts):
    return lax.dynamic_update_slice(x, update, _as_they_are(starts), allow_negative_indices=False)


def _as_they_are(starts):
    """As arrays, which JAX leaves to be clamped where they are negative; it refuses negative numbers.

    A Program's indices do not count from the end: JAX has made them absolute when it traced the function.
    """
    return [np.asarray(i) if isinstance(i, np.integer) else i for i in starts]


def _gather(x, indices, *, slice_sizes, mode, fill_value, sorted, unique, **dimension_numbers):
    return lax.gather(
        x,
        indices,
        lax.GatherDimensionNumbers(**dimension_numbers),
        slice_sizes,
        unique_indices=unique,
        indices_are_sorted=sorted,
        mode=_MODES[mode],
        fill_value=fill_value,
    )


def _gathering(eqn):
    numbers = eqn.params["dimension_numbers"]
    return {
        **{name: integers(getattr(numbers, name)) for name in _GATHER_DIMS},
        "slice_sizes": dims(eqn.params["slice_sizes"]),
        "mode": _mode(eqn),
        "fill_value": _fill_value(eqn.params["fill_value"], eqn.invars[0].aval.dtype),
        "sorted": bool(eqn.params["indices_are_sorted"]),
        "unique": bool(eqn.params["unique_indices"]),
    }


def _scattering(eqn):
    numbers = eqn.params["dimension_numbers"]
    return {
        **{name: integers(getattr(numbers, name)) for name in _SCATTER_DIMS},
        "mode": _mode(eqn),
        "sorted": bool(eqn.params["indices_are_sorted"]),
        "unique": bool(eqn.params["unique_indices"]),
    }


def _scatter(op: str) -> Spec:
    scatter = getattr(lax, op)

    def emit(x, indices, updates, *, mode, sorted, unique, **dimension_numbers):
        return scatter(
            x,
            indices,
            updates,
            lax.ScatterDimensionNumbers(**dimension_numbers),
            indices_are_sorted=sorted,
            unique_indices=unique,
            mode=_MODES[mode],
        )

    return Spec(
        op,
        emit,
        _scattering,
        lax=(op.replace("_", "-"),),
        lower=_lower_scatter if op == "scatter" else None,
    )


def _lower_scatter(lowering, eqn, inputs):
    if applies_function(eqn):
        return lower_applied(lowering, eqn, inputs)
    return lowering.emit("scatter", inputs, eqn, **_scattering(eqn))


SPECS = [
    Spec("dynamic_slice", _dynamic_slice, lambda eqn: {"sizes": dims(eqn.params["slice_sizes"])}),
    Spec("dynamic_update_slice", _dynamic_update_slice),
    Spec(
        "gather",
        _gather,
        _gathering,
    ),
    *map(_scatter, ["scatter", "scatter_add", "scatter_sub", "scatter_mul", "scatter_min", "scatter_max"]),
]
