"""The JAX primitive `julia_function`: a Julia function, or one of its derivatives, applied to arrays."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jax.numpy as jnp
from jax.interpreters import ad, batching, mlir

from ..errors import EngineUnavailable, NotDifferentiable
from ..frontend.adapter import devices, jaxprs
from ..frontend.adapter.extend import Primitive
from ..ir.types import TensorType
from .call import Call
from .compile import dtype_of, lower, run_julia

julia_function_p = Primitive("julia_function")
julia_function_p.multiple_results = True


def bind(call: Call, *operands: Any) -> list[Any]:
    return julia_function_p.bind(*operands, call=call)


# Running


@julia_function_p.def_impl
def _impl(*operands, call):
    return run_julia(julia_function_p, operands, call.function.name, call=call)


@julia_function_p.def_abstract_eval
def _abstract_eval(*avals, call):
    lead = () if call.batch is None else (call.batch,)
    return [devices.result_aval((*lead, *t.shape), dtype_of(t), avals) for t in call.results]


def _on_cpu(ctx, *operands, call):
    if devices.is_export(ctx):
        raise EngineUnavailable(f"{call.function.name} is a Julia function, which no export can hold")
    return lower(ctx, call, operands)


def _elsewhere(ctx, *operands, call):
    raise EngineUnavailable(f"{call.function.name} is a Julia function, which runs on the CPU alone")


mlir.register_lowering(julia_function_p, _elsewhere)
mlir.register_lowering(julia_function_p, _on_cpu, platform="cpu")


# Differentiation


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, call: Call):
    results = bind(call, *primals)
    parts, dots = call.split(primals), call.split(tangents)
    terms = []
    if given := tuple(i for i, t in enumerate(dots[0]) if not jaxprs.is_zero(t)):
        derivative = call.differentiated(given)
        active = derivative.steps[-1].active
        mask = call.batched and (*call.batched, *(call.batched[i] for i in active))
        directions = [jaxprs.instantiated(dots[0][i], parts[0][i]) for i in active]
        terms.append(bind(replace(derivative, batch=call.batch, batched=mask), *primals, *directions))
    for k in range(1, len(parts)):
        if not all(map(jaxprs.is_zero, dots[k])):
            group = list(map(jaxprs.instantiated, dots[k], parts[k]))
            operands = [*parts[:k], group, *parts[k + 1 :]]
            terms.append(bind(call, *(x for part in operands for x in part)))
    sums = iter([functools.reduce(jnp.add, column) for column in zip(*terms, strict=True)])
    return results, [
        next(sums) if terms and t.inexact else jaxprs.no_tangent(y)
        for t, y in zip(call.results, results, strict=True)
    ]


def _transpose(cotangents: Sequence[Any], *operands, call: Call):
    parts = call.split(operands)
    linear = [k for k, part in enumerate(parts) if any(map(ad.is_undefined_primal, part))]
    if len(linear) != 1 or linear[0] == 0:
        raise NotDifferentiable(f"{call.function.name} is not linear in what it is to be transposed in")
    (group,) = linear
    backward, taken = call.transposed(group)
    masks = call.split(call.batched or [False] * len(operands))
    given = [
        _zeros(t, call.batch) if jaxprs.is_zero(ct) else ct
        for ct, t in zip(cotangents, call.results, strict=True)
    ]
    mask = [b for k in taken for b in ([True] * len(given) if k is None else masks[k])]
    backward = replace(backward, batch=call.batch, batched=tuple(mask) if call.batched else ())
    results = bind(backward, *(x for k in taken for x in (given if k is None else parts[k])))
    if call.batched:  # what all items of the batch share gets the sum of their cotangents
        results = [y if b else y.sum(0) for y, b in zip(results, masks[group], strict=True)]
    before = sum(len(part) for part in parts[:group])
    found = dict(enumerate(results, before))
    return [found[i] if ad.is_undefined_primal(x) else None for i, x in enumerate(operands)]


ad.primitive_jvps[julia_function_p] = _jvp
ad.primitive_transposes[julia_function_p] = _transpose


def _zeros(type_: TensorType, batch: int | None) -> Any:
    lead = () if batch is None else (batch,)
    return jnp.zeros((*lead, *type_.shape), dtype_of(type_))


# Batching: one call loops over the batch. Nested batches become one, as long as the product of their lengths.


def _batch(operands: Sequence[Any], dims: Sequence[Any], *, call: Call):
    size = next(x.shape[d] for x, d in zip(operands, dims, strict=True) if d is not None)
    inner = call.batched or (False,) * len(operands)
    mapped = [d is not None for d in dims]
    moved = [x if d is None else jnp.moveaxis(x, d, 0) for x, d in zip(operands, dims, strict=True)]
    if call.batch is None:
        return bind(replace(call, batch=size, batched=tuple(mapped)), *moved), [0] * len(call.results)
    total = size * call.batch
    flat = [_merged(x, m, b, size, call.batch) for x, m, b in zip(moved, mapped, inner, strict=True)]
    batched = tuple(m or b for m, b in zip(mapped, inner, strict=True))
    results = bind(replace(call, batch=total, batched=batched), *flat)
    return [y.reshape(size, call.batch, *y.shape[1:]) for y in results], [0] * len(results)


def _merged(x: Any, mapped: bool, batched: bool, size: int, batch: int) -> Any:
    """The operand with both batch axes as one, if it has either."""
    if not mapped and not batched:
        return x
    if not batched:
        x = jnp.broadcast_to(x[:, None], (size, batch, *x.shape[1:]))
    if not mapped:
        x = jnp.broadcast_to(x[None], (size, *x.shape))
    return x.reshape(size * batch, *x.shape[2:])


batching.primitive_batchers[julia_function_p] = _batch
