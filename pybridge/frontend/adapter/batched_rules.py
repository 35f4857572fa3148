"""Rules of batched primitives, as JAX before 0.12 makes them: an object that stands for another under vmap.

Their rules are those of the other under vmap.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import compress
from typing import Any

import jax
import jax.numpy as jnp

from .custom_rules import CustomJvp, CustomVjp, Given, Perturbed, VjpRule
from .high_rules import leaves_of
from .jaxprs import ClosedJaxpr, is_inexact, jaxpr_as_fun, traced

Dim = int | None


def batched(inner: CustomJvp | CustomVjp, call: ClosedJaxpr, prim: Any) -> CustomJvp | CustomVjp:
    """The rules of `prim`, which is another primitive, with the rules `inner`, under vmap.

    call: the value of `prim`.
    """
    dims = leaves_of(prim.in_dims, prim.prim.in_tree)
    out_dims = leaves_of(prim.out_dim, prim.prim.out_tree)
    size = prim.axis_data.size
    if isinstance(inner, CustomJvp):
        return replace(inner, call=call, rule=_pushforward(inner, dims, out_dims, call, size))
    return replace(inner, call=call, rule=_pullback(inner, dims, out_dims, call, size))


def _pushforward(
    inner: CustomJvp, dims: list[Dim], out_dims: list[Dim], call: ClosedJaxpr, size: int
) -> Callable[[Perturbed], tuple[ClosedJaxpr, list[bool]]]:
    def rule(perturbed: Perturbed) -> tuple[ClosedJaxpr, list[bool]]:
        jaxpr, zeros = inner.rule(perturbed)
        primals, axes = call.in_avals[inner.consts :], dims[inner.consts :]
        function = jax.vmap(
            jaxpr_as_fun(jaxpr),
            in_axes=(*axes, *compress(axes, perturbed)),
            out_axes=[*out_dims, *compress(out_dims, (not zero for zero in zeros))],
            axis_size=size,
        )
        tangents = [a.to_tangent_aval() for a in compress(primals, perturbed)]
        return traced(function, [*primals, *tangents]), zeros

    return rule


def _pullback(
    inner: CustomVjp, dims: list[Dim], out_dims: list[Dim], call: ClosedJaxpr, size: int
) -> Callable[[Perturbed], VjpRule]:
    moving_outs = list(map(is_inexact, call.out_avals))

    def rule(perturbed: Perturbed) -> VjpRule:
        found = inner.rule(perturbed)
        own = len(found.residuals)
        run = jax.vmap(
            jaxpr_as_fun(found.forward), in_axes=tuple(dims), out_axes=[*[0] * own, *out_dims], axis_size=size
        )
        forward = traced(run, call.in_avals)
        residuals = forward.out_avals[:own]
        axes = list(compress(dims[inner.consts :], perturbed))

        def backward(given: Given) -> tuple[ClosedJaxpr, Given]:
            jaxpr, taken = found.backward(given)
            pull = jax.vmap(jaxpr_as_fun(jaxpr), in_axes=0, out_axes=0, axis_size=size)
            places = list(compress(compress(out_dims, moving_outs), taken))

            def run(*args: Any) -> list[Any]:
                cotangents = zip(args[own:], places, strict=True)
                results = pull(*args[:own], *(_in_front(ct, d, size) for ct, d in cotangents))
                return [_placed(ct, d) for ct, d in zip(results, axes, strict=True)]

            cotangent_avals = [a.to_ct_aval() for a in compress(compress(call.out_avals, moving_outs), taken)]
            return traced(run, [*residuals, *cotangent_avals]), taken

        return VjpRule(
            forward, 0, [None] * own, residuals, [False] * len(perturbed), backward, found.for_residuals
        )

    return rule


def _in_front(cotangent: Any, dim: Dim, size: int) -> Any:
    """The cotangents of all examples; that of a result which they share is given to the first."""
    if dim is not None:
        return jnp.moveaxis(cotangent, dim, 0)
    return jnp.zeros((size, *cotangent.shape), cotangent.dtype).at[0].set(cotangent)


def _placed(cotangents: Any, dim: Dim) -> Any:
    """The cotangent of an operand with the examples at that axis; of one that they share, their sum."""
    return cotangents.sum(0) if dim is None else jnp.moveaxis(cotangents, 0, dim)
