"""Cholesky's factor and triangular systems, for which StableHLO has operations of its own."""

from __future__ import annotations

from typing import Any

import jax
from jax import lax
from jax import numpy as jnp
from jax.interpreters import batching, mlir

from ..adapter.extend import Primitive, ir, stablehlo

_cholesky_p = Primitive("portable_cholesky")
_triangular_solve_p = Primitive("portable_triangular_solve")


def cholesky(x: Any) -> Any:
    """The lower factor L of x = L Lᴴ; NaN where there is none.

    As by LAPACK, nothing is read of the upper triangle, nor of the diagonal's imaginary parts, of which XLA's
    own operation takes square roots.
    """
    if jnp.iscomplexobj(x):
        x = jnp.where(jnp.eye(x.shape[-1], dtype=bool), x.real.astype(x.dtype), x)
    return jnp.tril(_cholesky_p.bind(x))


def triangular_solve(
    a: Any,
    b: Any,
    *,
    left_side: bool,
    lower: bool,
    transpose_a: bool,
    conjugate_a: bool,
    unit_diagonal: bool,
) -> Any:
    """x of op(a) x = b, or of x op(a) = b. See `jax.lax.linalg.triangular_solve`."""
    if conjugate_a and not transpose_a:
        a = lax.conj(a) if jnp.iscomplexobj(a) else a
    transposed = "NO_TRANSPOSE" if not transpose_a else "ADJOINT" if conjugate_a else "TRANSPOSE"
    return _triangular_solve_p.bind(
        a, b, left_side=left_side, lower=lower, unit_diagonal=unit_diagonal, transposed=transposed
    )


@_cholesky_p.def_abstract_eval
def _cholesky_aval(x):
    return jax.core.ShapedArray(x.shape, x.dtype)


@_triangular_solve_p.def_abstract_eval
def _triangular_solve_aval(a, b, **_):
    return jax.core.ShapedArray(b.shape, b.dtype)


def _lower_cholesky(ctx, x):
    return [stablehlo.cholesky(x, lower=ir.BoolAttr.get(True))]


def _lower_triangular_solve(ctx, a, b, *, left_side, lower, unit_diagonal, transposed):
    flags = (ir.BoolAttr.get(flag) for flag in (left_side, lower, unit_diagonal))
    return [stablehlo.triangular_solve(a, b, *flags, stablehlo.TransposeAttr.get(transposed))]


mlir.register_lowering(_cholesky_p, _lower_cholesky)
mlir.register_lowering(_triangular_solve_p, _lower_triangular_solve)


def _impl(primitive: Primitive) -> None:
    compiled = jax.jit(primitive.bind, static_argnames=("left_side", "lower", "unit_diagonal", "transposed"))
    primitive.def_impl(compiled)


def _batching_rule(primitive: Primitive) -> None:
    """Leading axes are batches to these operations, so an operand without the mapped one is repeated."""

    def rule(operands, axes, **params):
        size = next(x.shape[d] for x, d in zip(operands, axes, strict=True) if d is not None)
        first = [batching.bdim_at_front(x, d, size) for x, d in zip(operands, axes, strict=True)]
        return primitive.bind(*first, **params), 0

    batching.primitive_batchers[primitive] = rule


for _p in (_cholesky_p, _triangular_solve_p):
    _impl(_p)
    _batching_rule(_p)
