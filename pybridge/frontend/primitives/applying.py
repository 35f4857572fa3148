"""`x.at[...].apply(f)`, a scatter with a function: the elements are gathered, and put back as f gives them.

An element that the indices name several times has f applied as often. JAX has no derivative of it; what it
becomes here has one.
"""

from __future__ import annotations

import math

import jax.numpy as jnp
from jax import lax

from ..adapter.extend import ClosedJaxpr
from .folding import elementwise, written_out


def applies_function(eqn) -> bool:
    """Whether a scatter has a function that does not just return the update."""
    update = eqn.params["update_jaxpr"]
    if update is None:
        return False
    update = getattr(update, "jaxpr", update)
    return bool(update.eqns) or update.outvars[0] is not update.invars[1]


def _apply(eqn):
    p = eqn.params
    numbers, mode = p["dimension_numbers"], p["mode"]
    flags = {"indices_are_sorted": p["indices_are_sorted"], "unique_indices": p["unique_indices"]}
    update = p["update_jaxpr"]
    closed = update if hasattr(update, "consts") else ClosedJaxpr(update, p["update_consts"])

    def apply(x, indices, updates):
        if 0 in updates.shape:
            return x
        function = elementwise(closed, updates.ndim)
        sizes = _window(numbers, x.ndim, updates.shape)

        def at_indices(array):
            return lax.gather(array, indices, _as_gather(numbers), sizes, mode=mode, **flags)

        (values,) = function(at_indices(x), updates)
        if not (p["unique_indices"] or _windows(numbers, indices.shape) == 1):
            ones = jnp.ones(updates.shape, jnp.int32)
            counts = lax.scatter_add(
                jnp.zeros(x.shape, jnp.int32), indices, ones, numbers, mode=mode, **flags
            )
            times = at_indices(counts)

            def again(state):
                done, values = state
                return done + 1, jnp.where(done < times, function(values, updates)[0], values)

            most = jnp.max(times)
            _, values = lax.while_loop(lambda state: state[0] < most, again, (jnp.int32(1), values))
        return lax.scatter(x, indices, values, numbers, mode=mode, **flags)

    return apply


lower_applied = written_out(_apply)


def _as_gather(numbers) -> lax.GatherDimensionNumbers:
    """The gather that reads what a scatter with these numbers writes."""
    return lax.GatherDimensionNumbers(
        offset_dims=numbers.update_window_dims,
        collapsed_slice_dims=numbers.inserted_window_dims,
        start_index_map=numbers.scatter_dims_to_operand_dims,
        operand_batching_dims=numbers.operand_batching_dims,
        start_indices_batching_dims=numbers.scatter_indices_batching_dims,
    )


def _window(numbers, rank: int, updates: tuple[int, ...]) -> tuple[int, ...]:
    """How much of each of the operand's axes an update covers."""
    single = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
    sizes = iter([updates[axis] for axis in numbers.update_window_dims])
    return tuple(1 if axis in single else next(sizes) for axis in range(rank))


def _windows(numbers, indices: tuple[int, ...]) -> int:
    """How many updates there are for each element of the batch: only those can meet."""
    batch = set(numbers.scatter_indices_batching_dims)
    return math.prod(n for axis, n in enumerate(indices[:-1]) if axis not in batch)
