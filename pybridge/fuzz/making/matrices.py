"""Random products and factorisations. These enter by what does not depend on signs, phases or orders."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...ir.types import TensorType, Var
from .growing import Growth, Unfit, sizes_of


def _dot_general(g: Growth) -> None:
    x = g.pick(lambda t: t.rank > 0 and t.dtype not in ("bool", "i8", "u8", "u32", "u64"))
    axes = list(range(x.type.rank))
    g.rng.shuffle(axes)
    contract = axes[: g.rng.randint(0, min(2, len(axes)))]
    batch = [a for a in axes if a not in contract and g.chance(0.3)]
    kept = [*contract, *batch]
    sizes = [sizes_of(x.type)[a] for a in kept]
    extra = [g.rng.randint(1, 4) for _ in range(g.rng.randint(0, 1))]
    order = g.rng.sample(range(len(kept) + len(extra)), len(kept) + len(extra))
    shape = [([*sizes, *extra])[order.index(k)] for k in range(len(order))]
    y = g.array(TensorType(x.type.dtype, tuple(shape)))
    n = len(contract)
    g.one(
        "dot_general",
        x,
        y,
        lhs_contract=tuple(contract),
        rhs_contract=tuple(order[:n]),
        lhs_batch=tuple(batch),
        rhs_batch=tuple(order[n : len(kept)]),
        dtype="f32" if x.type.dtype in ("bf16", "f16") and g.chance(0.5) else x.type.dtype,
        precision=None,
    )


def _convolution(g: Growth) -> None:
    x = g.pick(lambda t: t.rank > 1 and 0 not in t.shape and t.dtype in ("f32", "f64", "bf16"))
    space = x.type.rank - 2 if x.type.rank > 2 else 1
    if x.type.rank == 2:
        x = g.one("reshape", x, shape=(*sizes_of(x.type), 1) if g.chance(0.5) else (1, *sizes_of(x.type)))
    groups = g.rng.choice([1, sizes_of(x.type)[1]]) if g.chance(0.3) else 1
    kernel = tuple(g.rng.randint(1, 3) for _ in range(space))
    out = groups * g.rng.randint(1, 2)
    w = g.array(TensorType(x.type.dtype, (out, sizes_of(x.type)[1] // groups, *kernel)))
    same = tuple(range(x.type.rank))
    g.one(
        "conv_general_dilated",
        x,
        w,
        strides=tuple(g.rng.randint(1, 2) for _ in kernel),
        low=tuple(g.rng.randint(0, 2) for _ in kernel),
        high=tuple(g.rng.randint(0, 2) for _ in kernel),
        lhs_dilation=tuple(g.rng.choice([1, 1, 2]) for _ in kernel),
        rhs_dilation=tuple(g.rng.choice([1, 1, 2]) for _ in kernel),
        lhs_spec=same,
        rhs_spec=same,
        out_spec=same,
        feature_groups=groups,
        batch_groups=1,
        dtype=x.type.dtype,
        precision=None,
    )


# Matrices with eigenvalues and singular values that are far apart


def _spread(x):
    n = min(x.shape[-2:])
    return 0.3 * jnp.tanh(x[..., :n, :n]) + np.diag(1.5 * np.arange(1, n + 1)).astype(x.dtype)


def _symmetric(x):
    a = _spread(x)
    return a + jnp.conj(jnp.swapaxes(a, -1, -2))


def _like(x, v):
    """Of several vectors or of a matrix v, by a function of eigenvalues x."""
    return (v * jnp.tanh(x)[..., None, :].astype(v.dtype)) @ jnp.conj(jnp.swapaxes(v, -1, -2))


def _eigh(x):
    v, w = lax.linalg.eigh(_symmetric(x))
    return w, _like(w, v)


def _svd(x):
    u, s, vh = lax.linalg.svd(_spread(x), full_matrices=False)
    return s, (u * jnp.tanh(s)[..., None, :]) @ vh


def _eig(x):
    w, v = lax.linalg.eig(_spread(x), compute_left_eigenvectors=False, enable_eigvec_derivs=True)
    return jnp.real(jnp.sum(jnp.sin(w), -1)), jnp.real((v * jnp.sin(w)[..., None, :]) @ jnp.linalg.inv(v))


def _lu_pivots(x):
    _, pivots, order = lax.linalg.lu(_spread(lax.stop_gradient(x))[..., ::-1])
    return lax.linalg.lu_pivots_to_permutation(pivots, order.shape[-1])


def _schur(x):
    t, z = lax.linalg.schur(lax.stop_gradient(_symmetric(x)))
    return jnp.sum(jnp.abs(t), (-1, -2)), z @ t @ jnp.swapaxes(z, -1, -2)


def _hessenberg(x):
    a, taus = lax.linalg.hessenberg(lax.stop_gradient(_spread(x)))
    return jnp.abs(lax.linalg.householder_product(a, taus))


def _tridiagonal(x):
    _, d, e, _ = lax.linalg.tridiagonal(lax.stop_gradient(_symmetric(x)))
    return d, jnp.abs(e)


def _pivoted(x):
    q, r, order = lax.linalg.qr(lax.stop_gradient(_spread(x)[..., ::-1]), pivoting=True, full_matrices=False)
    return q @ r, order


def _ormqr(x):
    h, taus = jnp.linalg.qr(lax.stop_gradient(_spread(x)), mode="raw")
    return lax.linalg.ormqr(jnp.swapaxes(h, -1, -2), taus, jnp.sin(lax.stop_gradient(x)), transpose=True)


def _geqrf(x):
    return jnp.linalg.qr(lax.stop_gradient(_spread(x)), mode="raw")


def _tridiagonal_solve(x):
    row = jnp.tanh(x[..., 0])
    return lax.linalg.tridiagonal_solve(row, 3 + row, jnp.sin(row), x)


_OF_ONE: dict[str, tuple[Callable, str]] = {
    "cholesky": (lambda x: lax.linalg.cholesky(_symmetric(x)), "f32 f64 c64 c128"),
    "eigh": (_eigh, "f32 f64 c64 c128"),
    "geqrf": (_geqrf, "f32 f64"),
    "ormqr": (_ormqr, "f32 f64"),
    "lu": (lambda x: lax.linalg.lu(_spread(x))[0], "f32 f64 c64 c128"),
    "lu_pivots_to_permutation": (_lu_pivots, "f32 f64"),
    "eig": (_eig, "f32 f64"),
    "hessenberg": (_hessenberg, "f32 f64"),
    "schur": (_schur, "f32 f64"),
    "tridiagonal": (_tridiagonal, "f32 f64"),
    "householder_product": (_hessenberg, "f32 f64"),
    "tridiagonal_solve": (_tridiagonal_solve, "f32 f64"),
    "svd": (_svd, "f32 f64"),
}


def _factorisation(op: str) -> Callable[[Growth], None]:
    f, dtypes = _OF_ONE[op]

    def make(g: Growth) -> None:
        g.inline(f, _matrix(g, dtypes.split()))

    return make


def _matrix(g: Growth, dtypes: list[str]) -> Var:
    def fits(t: TensorType) -> bool:
        return t.rank > 1 and t.dtype in dtypes and min(sizes_of(t)[-2:]) > 0 and 0 not in t.shape

    if not any(fits(v.type) for v in g.scope):
        x = g.pick(lambda t: t.dtype in dtypes)
        return g.inline(lambda x: jnp.sin(jnp.sum(x) * np.arange(1, 10).reshape(3, 3).astype(x.dtype)), x)[0]
    return g.pick(fits)


def _triangular_solve(g: Growth) -> None:
    x = _matrix(g, ["f32", "f64", "c64", "c128"])
    flags = {name: g.chance(0.5) for name in ("left_side", "lower", "transpose_a", "unit_diagonal")}
    (a,) = g.inline(_spread, x)
    b = g.array(a.type)
    g.one("triangular_solve", a, b, conjugate_a=False, **flags)


def _geqp3(g: Growth) -> None:
    x = _matrix(g, ["f32", "f64"])
    (a,) = g.inline(lambda x: lax.stop_gradient(_spread(x)[..., ::-1]), x)
    order = g.zeros(TensorType("i32", a.type.shape[:-1]))
    reflections, order, _ = g.add("geqp3", a, order)
    g.one("abs", reflections)
    g.hidden.add(reflections)


def _qr(g: Growth) -> None:
    x = _matrix(g, ["f32", "f64"])
    g.inline(_pivoted if g.chance(0.3) else lambda x: lax.linalg.qr(_spread(x)), x)


def _linear_solve(g: Growth) -> None:
    x = _matrix(g, ["f32", "f64"])
    (a,) = g.inline(_spread, x)
    b = g.array(a.type)
    if not isinstance(b, Var):
        raise Unfit
    g.inline(jnp.linalg.solve, a, b)


def _linear_call(g: Growth) -> None:
    x = g.pick(lambda t: t.dtype in ("f32", "f64"))
    y = g.array(x.type)
    if not isinstance(y, Var):
        raise Unfit
    times = lambda f, t: f * t  # noqa: E731
    g.inline(lambda x, y: jax.custom_derivatives.linear_call(times, times, lax.stop_gradient(y), x), x, y)


MAKERS: dict[str, Callable[[Growth], None]] = {
    "dot_general": _dot_general,
    "conv_general_dilated": _convolution,
    "triangular_solve": _triangular_solve,
    "geqp3": _geqp3,
    "qr": _qr,
    "custom_linear_solve": _linear_solve,
    "linear_call": _linear_call,
    **{op: _factorisation(op) for op in _OF_ONE},
}
