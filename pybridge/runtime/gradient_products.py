"""The derivative of a real number by its gradient, which was computed with it.

`gradient_product` is the sum of the products of gradients and tangents. Its transpose, for a cotangent c, is
c times the gradient: `scaled_gradient`, where c is not known to be 1. What is finite for c = 1e-20 may be
infinite for c = 1, and what is 1 for c = 1e30 may be zero: then the gradient is computed anew, with c going
through the backward pass. If the gradient is finite, all that it was computed from was, and what a cotangent
above 1 would have kept from underflow was below c times the smallest normal number. Up to c = 1/eps that is
left to underflow: where numbers are flushed to zero, a sum of that size has no relative precision either.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.interpreters import ad, batching, mlir

from ..frontend.adapter import checks, devices, jaxprs, jets
from ..frontend.adapter.extend import Primitive, ir
from ..frontend.adapter.gradients import Differentiated, Levels, along, anew, operands, parts, scaled_anew

gradient_product_p = Primitive("gradient_product")
scaled_gradient_p = Primitive("scaled_gradient")
scaled_gradient_p.multiple_results = True


def gradient_product(
    number: Differentiated,
    gradients: Sequence[Any],
    xs: Sequence[Any],
    tangents: Sequence[Any],
    levels: Levels = (),
) -> Any:
    """The derivative along tangents of the active x, by which the gradients are, of each in the batches.

    Gradients and tangents have the axes of all batches in front, also those by x that items have in common.
    """
    return gradient_product_p.bind(*gradients, *xs, *tangents, number=number, levels=levels)


gradient_product_p.def_impl(along)


@gradient_product_p.def_abstract_eval
def _type_of_product(*avals: Any, number: Differentiated, levels: Levels) -> Any:
    return devices.result_aval(avals[-1].shape[: len(levels)], number.dtype, avals)


def _jvp_of_product(
    primals: Sequence[Any], dots: Sequence[Any], *, number: Differentiated, levels: Levels
) -> tuple[Any, Any]:
    gradients, xs, tangents = parts(number, primals)
    _, by_xs, by_tangents = parts(number, dots)
    result = gradient_product_p.bind(*primals, number=number, levels=levels)
    if all(map(jaxprs.is_zero, by_xs)):
        moved = [jaxprs.instantiated(t, jax.typeof(x)) for t, x in zip(by_tangents, tangents, strict=True)]
        return result, gradient_product(number, gradients, xs, moved, levels)

    def of_operands(*args: Any) -> Any:
        return along(*gradients, *args, number=number, levels=levels)

    return result, jaxprs.jvp(of_operands, [*xs, *tangents], [*by_xs, *by_tangents])[1]


def _transpose_of_product(cotangent: Any, *args: Any, number: Differentiated, levels: Levels) -> list[Any]:
    gradients, xs, tangents = parts(number, args)
    known: list[Any] = [None] * (len(gradients) + len(xs))
    if jaxprs.is_zero(cotangent):
        return known + [jaxprs.no_cotangent(t.aval) if ad.is_undefined_primal(t) else None for t in tangents]
    found = _scaled(number, gradients, xs, cotangent, levels)
    return known + [
        devices.varying_like(g, t.aval) if ad.is_undefined_primal(t) else None
        for g, t in zip(found, tangents, strict=True)
    ]


def _batch_of_product(args: Sequence[Any], dims: Sequence[Any], **how: Any) -> tuple[Any, int]:
    return jax.vmap(lambda *args: along(*args, **how), in_axes=tuple(dims))(*args), 0


# Scaled gradients


def _scaled(
    number: Differentiated, gradients: Sequence[Any], xs: Sequence[Any], c: Any, levels: Levels
) -> Sequence[Any]:
    if not jaxprs.any_tracer([c]) and np.all(np.asarray(c) == 1):
        return gradients
    if jaxprs.any_tracer([c, *gradients, *xs]):
        return scaled_gradient_p.bind(*gradients, *xs, c, number=number, levels=levels)
    return _scaled_now(*gradients, *xs, c, number=number, levels=levels)


@scaled_gradient_p.def_impl
def _scaled_now(*args: Any, number: Differentiated, levels: Levels) -> Sequence[Any]:
    """No second way is compiled where the values are there."""
    gradients, xs, c = operands(number, args)
    return _multiplied(gradients, c) if _loses_nothing(gradients, c) else anew(number, levels, xs, c)


def _scaled_later(*args: Any, number: Differentiated, levels: Levels) -> Sequence[Any]:
    gradients, xs, c = operands(number, args)
    return lax.cond(
        _loses_nothing(gradients, c), lambda: _multiplied(gradients, c), lambda: anew(number, levels, xs, c)
    )


def _lowered(ctx: Any, *operands: Any, number: Differentiated, levels: Levels) -> Sequence[Any]:
    """Of the cotangent 1 of `jax.grad` the gradients themselves: under `jax.jit` it is seen only here."""
    if _is_one(operands[-1]):
        return operands[: len(ctx.avals_out)]
    return _lowered_later(ctx, *operands, number=number, levels=levels)


_lowered_later = mlir.lower_fun(_scaled_later, multiple_results=True)


def _is_one(value: Any) -> bool:
    """Whether a value of compiled code is the constant 1, in a batch one for each item."""
    made_by = _made_by(value)
    while made_by is not None and made_by.name == "stablehlo.broadcast_in_dim":
        made_by = _made_by(made_by.operands[0])
    if made_by is None or made_by.name != "stablehlo.constant":
        return False
    number = ir.DenseElementsAttr(made_by.attributes["value"])
    return number.is_splat and number.get_splat_value() == ir.FloatAttr.get(number.type.element_type, 1.0)


def _made_by(value: Any) -> Any:
    """The operation of which a value is a result; None of an argument."""
    return value.owner if isinstance(value, ir.OpResult) else None


@jax.jit
def _loses_nothing(gradients: Sequence[Any], c: Any) -> Any:
    finite = [jnp.all(jnp.isfinite(g)) for g in gradients]
    return jnp.all(jnp.abs(c) <= 1 / jnp.finfo(c.dtype).eps) & jnp.all(jnp.stack(finite))


@jax.jit
def _multiplied(gradients: Sequence[Any], c: Any) -> list[Any]:
    def of(g: Any) -> Any:
        factor = lax.expand_dims(c, range(c.ndim, g.ndim))
        wide = jnp.promote_types(g.dtype, c.dtype)
        return (g.astype(wide) * factor.astype(wide)).astype(g.dtype)

    return list(map(of, gradients))


@scaled_gradient_p.def_abstract_eval
def _types_of_scaled(*avals: Any, number: Differentiated, levels: Levels) -> list[Any]:
    gradients, _, _ = operands(number, avals)
    return [devices.result_aval(g.shape, g.dtype, avals) for g in gradients]


def _jvp_of_scaled(
    primals: Sequence[Any], dots: Sequence[Any], *, number: Differentiated, levels: Levels
) -> tuple[Any, Any]:
    """By the gradient that is computed anew: that has a derivative by all that it depends on."""
    count = len(number.active)
    return jaxprs.jvp(lambda *args: anew(number, levels, args[:-1], args[-1]), primals[count:], dots[count:])


def _batch_of_scaled(
    args: Sequence[Any], dims: Sequence[Any], *, number: Differentiated, levels: Levels
) -> tuple[Sequence[Any], list[int]]:
    size = next(x.shape[d] for x, d in zip(args, dims, strict=True) if d is not None)
    gradients, xs, c = operands(number, args)
    of_gradients, of_xs, of_c = operands(number, dims)

    def in_front(x: Any, d: Any) -> Any:
        return batching.bdim_at_front(x, d, size)

    results = _scaled(
        number,
        list(map(in_front, gradients, of_gradients)),
        [x if d is None else in_front(x, d) for x, d in zip(xs, of_xs, strict=True)],
        in_front(c, of_c),
        (tuple(d is not None for d in of_xs), *levels),
    )
    return results, [0] * len(results)


mlir.register_lowering(gradient_product_p, mlir.lower_fun(along, multiple_results=False))
mlir.register_lowering(scaled_gradient_p, _lowered, cacheable=False)  # which would hide constants
ad.primitive_jvps[gradient_product_p] = _jvp_of_product
ad.primitive_jvps[scaled_gradient_p] = _jvp_of_scaled
ad.primitive_transposes[gradient_product_p] = _transpose_of_product
batching.primitive_batchers[gradient_product_p] = _batch_of_product
batching.primitive_batchers[scaled_gradient_p] = _batch_of_scaled
checks.register(gradient_product_p, lambda **params: lambda *args: [along(*args, **params)])
checks.register(scaled_gradient_p, lambda **params: lambda *args: _scaled_later(*args, **params))
jets.register(scaled_gradient_p, lambda **params: lambda *args: scaled_anew(*args, **params))
