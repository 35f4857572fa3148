"""`reduce` and `reduce_window` with a function of the user's: written out as that function on whole arrays.

XLA leaves the order of a reduction open and asks for an associative function. Here neighbours are combined,
so that it need not be commutative, which JAX's own derivative takes for granted. The initial value takes part
once, and once for each padded place of a window.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import jax
from jax import lax

from ...errors import UnsupportedPrimitive
from ..adapter.extend import ClosedJaxpr, jaxpr_as_fun

Arrays = Sequence[Any]


def elementwise(closed_jaxpr, rank: int) -> Callable[..., Arrays]:
    """A jaxpr on scalars as a function of arrays of that rank."""
    function = jaxpr_as_fun(closed_jaxpr)
    for _ in range(rank):
        function = jax.vmap(function)
    return function


def _full(init: Arrays, shape: tuple) -> Arrays:
    return [lax.broadcast(i, shape) for i in init]


def _pairwise(combine: Callable[..., Arrays], xs: Arrays) -> Arrays:
    """Everything along the first axis combined, neighbours first, into an axis of size 1."""
    while (n := xs[0].shape[0]) > 1:
        even = n - n % 2
        first, second = ([lax.slice_in_dim(x, k, even, 2) for x in xs] for k in (0, 1))
        rest = [lax.slice_in_dim(x, even, n) for x in xs]
        xs = combine(*first, *second)
        if even < n:
            xs = [lax.concatenate([x, last], 0) for x, last in zip(xs, rest, strict=True)]
    return xs


def _reduce(eqn):
    axes, reducer = tuple(eqn.params["dimensions"]), eqn.params["jaxpr"]

    def fold(*operands):
        xs, init = operands[: len(operands) // 2], operands[len(operands) // 2 :]
        shape = xs[0].shape
        kept = tuple(k for k in range(len(shape)) if k not in axes)
        outer = tuple(shape[k] for k in kept)
        count = 1
        for k in axes:
            count *= shape[k]
        if count == 0:
            return _full(init, outer)
        combine = elementwise(reducer, len(outer) + 1)
        order = (*sorted(axes), *kept)
        folded = _pairwise(combine, [lax.reshape(lax.transpose(x, order), (count, *outer)) for x in xs])
        return [lax.squeeze(x, (0,)) for x in combine(*_full(init, (1, *outer)), *folded)]

    return fold


def _reduce_window(eqn):
    window, strides, padding, base, dilation = (
        eqn.params[name]
        for name in ("window_dimensions", "window_strides", "padding", "base_dilation", "window_dilation")
    )
    reducer = ClosedJaxpr(eqn.params["jaxpr"], eqn.params["consts"])
    out = eqn.outvars[0].aval.shape

    def fold(*operands):
        xs, init = operands[: len(operands) // 2], operands[len(operands) // 2 :]
        result = _full(init, out)
        if 0 in out:
            return result
        gaps = [(low, high, k - 1) for (low, high), k in zip(padding, base, strict=True)]
        padded = [lax.pad(x, i, gaps) for x, i in zip(xs, init, strict=True)]
        combine = elementwise(reducer, len(out))
        for position in itertools.product(*map(range, window)):
            start = [k * d for k, d in zip(position, dilation, strict=True)]
            limit = [a + (n - 1) * s + 1 for a, n, s in zip(start, out, strides, strict=True)]
            result = combine(*result, *(lax.slice(x, start, limit, strides) for x in padded))
        return result

    return fold


def written_out(fold_of: Callable[[Any], Callable[..., Arrays]]):
    def lower(lowering, eqn, inputs):
        avals = [v.aval for v in eqn.invars]
        if not all(isinstance(n, int) for aval in avals for n in aval.shape):
            raise UnsupportedPrimitive(
                f"{eqn.primitive} with a function over axes of unknown size at {lowering.source}",
                primitive=str(eqn.primitive),
                source=lowering.source,
            )
        jaxpr = jax.make_jaxpr(fold_of(eqn))(*(jax.ShapeDtypeStruct(a.shape, a.dtype) for a in avals))
        start, source = len(lowering.equations), lowering.source
        outputs = lowering.inline(jaxpr, inputs)
        written = lowering.equations[start:]
        lowering.equations[start:] = [replace(eq, source=source) for eq in written]
        return outputs

    return lower


FOLDED = {"reduce": written_out(_reduce), "reduce_window": written_out(_reduce_window)}
