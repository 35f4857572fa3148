"""A linear function with a transpose of its own, as a JAX primitive.

`jax.custom_derivatives.linear_call` is one too; it has no batching rule, and no derivative in its residuals.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.interpreters import ad, batching, mlir

from .extend import Primitive
from .jaxprs import (
    ClosedJaxpr,
    any_tracer,
    at_places,
    constants,
    instantiated,
    is_zero,
    jaxpr_as_fun,
    opened,
    traced,
)

linear_map_p = Primitive("linear_map")
linear_map_p.multiple_results = True

Function = Callable[..., Sequence[Any]]


def linear_map(
    call: Function, transpose: Function, residuals: Sequence[Any], operands: Sequence[Any]
) -> list[Any]:
    """`call(*residuals, *operands)`, a list, which is linear in the operands.

    transpose: (residuals..., cotangents of the results...) -> (cotangents of the operands...).
    Tracers that the two close over become residuals.
    """
    known, linear = (list(map(jax.typeof, xs)) for xs in (residuals, operands))
    forward = traced(call, [*known, *linear])
    backward = traced(transpose, [*known, *(a.to_ct_aval() for a in forward.out_avals)])
    of_forward, of_backward = ([c for _, c in constants(body)] for body in (forward, backward))
    if not any_tracer([*of_forward, *of_backward]):
        return _bind(residuals, operands, forward, backward)
    n, m = len(of_forward), len(of_backward)
    there, back = (jaxpr_as_fun(ClosedJaxpr(opened(body), ())) for body in (forward, backward))
    return linear_map(
        lambda *args: there(*args[:n], *args[n + m :]),
        lambda *args: back(*args[n:]),
        [*of_forward, *of_backward, *residuals],
        operands,
    )


def _bind(
    residuals: Sequence[Any], operands: Sequence[Any], call: ClosedJaxpr, transpose: ClosedJaxpr
) -> list[Any]:
    count = len(residuals)
    return linear_map_p.bind(*residuals, *operands, residuals=count, call=call, transpose=transpose)


@linear_map_p.def_impl
def _impl(*args: Any, call: ClosedJaxpr, **_: Any) -> list[Any]:
    return jaxpr_as_fun(call)(*args)


@linear_map_p.def_abstract_eval
def _abstract_eval(*_: Any, call: ClosedJaxpr, **__: Any) -> list[Any]:
    return call.out_avals


mlir.register_lowering(linear_map_p, mlir.lower_fun(_impl, multiple_results=True))


def _jvp(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    residuals: int,
    call: ClosedJaxpr,
    transpose: ClosedJaxpr,
) -> tuple[list[Any], list[Any]]:
    known, operands = primals[:residuals], primals[residuals:]
    dots = [instantiated(t, jax.typeof(x)) for t, x in zip(tangents, primals, strict=True)][residuals:]
    results = _bind(known, operands, call, transpose)
    moved = _bind(known, dots, call, transpose)
    active = [i for i, t in enumerate(tangents[:residuals]) if not is_zero(t)]
    if active:
        of_active = at_places(jaxpr_as_fun(call), active, primals)
        _, others = jax.jvp(of_active, [known[i] for i in active], [tangents[i] for i in active])
        moved = [x + y for x, y in zip(moved, others, strict=True)]
    return results, moved


ad.primitive_jvps[linear_map_p] = _jvp


def _transpose(
    cotangents: Sequence[Any], *args: Any, residuals: int, call: ClosedJaxpr, transpose: ClosedJaxpr
) -> list[Any]:
    given = [instantiated(ct, aval) for ct, aval in zip(cotangents, call.out_avals, strict=True)]
    return [None] * residuals + _bind(args[:residuals], given, transpose, call)


ad.primitive_transposes[linear_map_p] = _transpose


def _batch(
    args: Sequence[Any], dims: Sequence[Any], *, residuals: int, call: ClosedJaxpr, transpose: ClosedJaxpr
) -> tuple[list[Any], list[int]]:
    size = next(x.shape[d] for x, d in zip(args, dims, strict=True) if d is not None)
    operands = [batching.bdim_at_front(x, d, size) for x, d in zip(args, dims, strict=True)][residuals:]
    known = list(args[:residuals])

    def batched(jaxpr: ClosedJaxpr) -> Function:
        over = (*dims[:residuals], *[0] * (len(jaxpr.in_avals) - residuals))
        return jax.vmap(jaxpr_as_fun(jaxpr), in_axes=over, axis_size=size)

    results = linear_map(batched(call), batched(transpose), known, operands)
    return results, [0] * len(results)


batching.primitive_batchers[linear_map_p] = _batch
