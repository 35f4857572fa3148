"""The Program for a batch: a Program is re-emitted as JAX operations, batched by JAX, and lowered again.

Where native code is to run a Program with loops for many items, it is a loop over blocks of items: what a
loop keeps for a later one, as those of gradients do, then stays in the caches, and threads share the blocks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import SideEffectError, TracingError, UnsupportedPrimitive
from ..frontend.adapter import jaxprs
from ..frontend.dimensions import Sizes
from ..frontend.emission import to_jax
from ..frontend.lowering import lower
from ..ir.dead_code import is_symbolic
from ..ir.deferred import BatchRule, NoProgram, remembered
from ..ir.program import Equation, Program
from ..ir.records import is_stack_of_records
from ..ir.while_bounds import bounded, common_bound

_VECTOR = 16
"""The items from which on the numbers of a record are kept apart: two vectors of float64, with AVX-512."""

_BLOCK_BYTES = 1 << 19
"""What the results of a block's loops take together, stacks for the most part: half of a core's second cache
(of 128 KiB to 2 MiB, measured with Lorenz's equations and an SIR model)."""

_FEWEST_BLOCKS = 4
"""With fewer all items together nearly fit that cache."""

BYTES_OF_BLOCKS = _FEWEST_BLOCKS * _BLOCK_BYTES
"""What the results of loops take from which on the items are computed in blocks."""

_LOOPS = ("scan", "while")


@dataclass(frozen=True)
class Batched:
    """A Program for a batch. hoisted: arrays to put in front of the arguments.

    dims: for each result the place of its batch axis, or None where it is the same for the whole batch.
    """

    program: Program
    hoisted: list[Any]
    dims: list[int | None]


def batched(
    program: Program,
    args: Sequence[Any],
    dims: Sequence[Any],
    sizes: Sizes = (),
    residuals: int = 0,
    natively: bool = False,
) -> Batched:
    """The Program for arguments with a batch axis at `dims`; results but residuals have it in front.

    natively: it is probably Julia that runs it, which computes the items in vectors.

    Raises NoProgram where a user's rule for batches does what Programs lack.
    """
    avals = tuple(jax.ShapeDtypeStruct(np.shape(x), x.dtype) for x in args)
    x64 = bool(jax.config.jax_enable_x64)
    return _batched(program, avals, tuple(dims), sizes, residuals, natively, x64)


def batched_by_jax(program: Program, args: Sequence[Any], dims: Sequence[Any], sizes: Sizes) -> list[Any]:
    """The results for such arguments, as JAX operations with their batch axes in front."""
    evaluate = to_jax(program, sizes=sizes)
    return list(jax.vmap(lambda *xs: list(evaluate(*xs)), in_axes=tuple(dims))(*args))


@remembered(maxsize=1024)
def _batched(
    program: Program, avals: tuple, dims: tuple, sizes: Sizes, residuals: int, natively: bool, x64: bool
) -> Batched:
    # `x64` is part of the key alone: the types that JAX gives to indices depend on it.
    evaluate = to_jax(program, sizes=sizes)

    def traced(out_axes: Any) -> tuple[jaxprs.ClosedJaxpr, list[int | None]]:
        """The results with their batch axes at `out_axes`, and where they have them by themselves."""
        found: list[int | None] = []
        shared: dict[int, Any] = {}

        def those_that_differ(*args: Any) -> list[Any]:
            results = evaluate(*args)
            found.extend(jaxprs.batch_axis(y) for y in results)
            shared.update((i, y) for i, y in enumerate(results) if found[i] is None)
            return [y for i, y in enumerate(results) if i not in shared]

        def whole(*args: Any) -> list[Any]:
            differing = iter(jax.vmap(those_that_differ, in_axes=dims, out_axes=out_axes)(*args))
            return [shared[i] if i in shared else next(differing) for i in range(len(program.outputs))]

        return jax.make_jaxpr(whole)(*avals), found

    jaxpr, found = traced(0)
    sizes_of_batch = [x.shape[axis] for x, axis in zip(avals, dims, strict=True) if axis is not None]
    in_vectors = natively and all(isinstance(n, int) and n >= _VECTOR for n in sizes_of_batch)

    def place(i: int, axis: int | None) -> int | None:
        # What loops stack has the batch axis behind that of the trips. To move it would cost a copy, here and
        # where it is used, but a user wants it in front.
        if axis is None:
            return None
        if i < len(found) - residuals:
            return 0
        # In front of the numbers of a record, vectors of items would be stored and loaded one number at a
        # time. Native loops transpose the record of each trip as they write and read it.
        last = in_vectors and is_stack_of_records(program, i)
        return len(program.output_types[i].shape) if last else axis

    out_dims = [place(i, axis) for i, axis in enumerate(found)]
    block = _block(program, sizes_of_batch[0]) if in_vectors and not any((*dims, *out_dims)) else None
    if block is not None:
        jaxpr = jax.make_jaxpr(_in_blocks(evaluate, dims, found, sizes_of_batch[0], block))(*avals)
    elif any(out_dims):
        jaxpr, _ = traced([axis for axis in out_dims if axis is not None])
    try:
        made, hoisted = lower(jaxpr, name=program.name or "program", hoist_constants=True)
    except (UnsupportedPrimitive, SideEffectError, TracingError) as e:
        raise NoProgram(str(e)) from e
    return Batched(bounded(made, common_bound(program)), hoisted, out_dims)


def has_batch_rules(program: Program) -> bool:
    """Whether the user gave a function in it a rule for batches, which is for all items together."""
    return any(isinstance(rule, BatchRule) for rule in program.rules.values())


def loop_bytes(program: Program) -> int:
    """What the results of its loops take, stacks for the most part."""
    return sum(v.type.bytes for eq in program.equations if eq.op in _LOOPS for v in eq.outputs)


def kept_at_most(program: Program) -> float:
    """What its loops would keep for a backward pass if they kept all: no bound, where one is a `while`."""

    def of_loop(eq: Equation) -> float:
        if eq.op == "while":
            return math.inf
        body = eq.attrs["body"]
        of_trip = sum(v.type.bytes for inner in body.equations for v in inner.outputs)
        return eq.attrs["length"] * (of_trip + kept_at_most(body))

    return sum(of_loop(eq) for eq in program.equations if eq.op in _LOOPS)


def _block(program: Program, items: int) -> int | None:
    """How many of so many items make a block; None where they all do."""
    looping = any(eq.op in _LOOPS for eq in program.equations)
    if not looping or is_symbolic(program) or has_batch_rules(program):
        return None
    most = _BLOCK_BYTES // max(1, loop_bytes(program)) // _VECTOR * _VECTOR
    if most < _VECTOR or items < _FEWEST_BLOCKS * most:
        return None
    candidates = range(most, most // 2, -_VECTOR)
    return min(candidates, key=lambda size: -(-items // size) * size)


def _in_blocks(
    evaluate: Callable[..., Sequence[Any]],
    dims: Sequence[int | None],
    found: Sequence[int | None],
    items: int,
    size: int,
) -> Callable[..., list[Any]]:
    """`evaluate` for arguments with the items in front, where `dims` says so, in a loop over blocks."""
    count = -(-items // size)

    def in_blocks(x: Any) -> Any:
        missing = count * size - items  # the last item takes their place
        whole = jnp.concatenate([x, jnp.repeat(x[-1:], missing, axis=0)]) if missing else x
        return whole.reshape(count, size, *x.shape[1:])

    def whole(*args: Any) -> list[Any]:
        def block(parts: Sequence[Any]) -> list[Any]:
            rest = iter(parts)
            own = [x if axis is None else next(rest) for x, axis in zip(args, dims, strict=True)]
            axes = [None if axis is None else 0 for axis in found]
            return jax.vmap(lambda *xs: list(evaluate(*xs)), in_axes=dims, out_axes=axes)(*own)

        cut = [in_blocks(x) for x, axis in zip(args, dims, strict=True) if axis is not None]
        results = zip(jax.lax.map(block, cut), found, strict=True)
        return [
            y[0] if axis is None else y.reshape(count * size, *y.shape[2:])[:items] for y, axis in results
        ]

    return whole
