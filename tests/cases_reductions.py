"""Cases of reductions, cumulative reductions, sorting and products."""

from __future__ import annotations

import jax.numpy as jnp
from casekit import ANY, WIDE, bools, distinct, given, ints, real, rows, whole_range
from jax import lax

X = real(-2, 2)
CUBE = real(-2, 2, (2, 3, 4))

_REDUCTIONS = [
    *rows("reduce_sum", ANY, lambda x: lax.reduce_sum(x, (0, 2)), CUBE, active=(0,)),
    *rows(
        "reduce_sum", "f32 i32", lambda x: lax.reduce_sum(x, (0, 1, 2)), ints(-9, 9, (2, 3, 4)), name="_all"
    ),
    *rows("reduce_prod", "f32 f64 c64", lambda x: lax.reduce_prod(x, (1,)), CUBE, active=(0,)),
    *rows("reduce_prod", "i32", lambda x: lax.reduce_prod(x, (1,)), ints(-3, 4), name="_int"),
    *(
        c
        for op in ("reduce_max", "reduce_min")
        for c in rows(op, "f32 f64 bf16", lambda x, op=op: getattr(lax, op)(x, (0,)), distinct(), active=(0,))
    ),
    *(
        c
        for op in ("reduce_max", "reduce_min")
        for c in rows(
            op, "i32 u8 bool", lambda x, op=op: getattr(lax, op)(x, (0, 1)), whole_range(), name="_int"
        )
    ),
    *(
        c
        for op in ("reduce_and", "reduce_or", "reduce_xor")
        for c in rows(op, "bool i32 u8", lambda x, op=op: getattr(lax, op)(x, (1,)), whole_range())
    ),
    *(
        c
        for op in ("argmax", "argmin")
        for c in rows(
            op, "f32 f64 i32", lambda x, op=op: getattr(lax, op)(x, 1, jnp.int32), distinct((3, 4), 1.0)
        )
    ),
    *(
        c
        for op in ("argmax", "argmin")
        for c in rows(
            op,
            "f32",
            lambda x, op=op: getattr(lax, op)(x, 0, jnp.uint8),
            given([[1, float("nan")], [1, 2], [0, 3]]),
            name="_ties",
        )
    ),
    *(
        c
        for op in ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp")
        for reverse in (False, True)
        for c in rows(
            op,
            WIDE,
            lambda x, op=op, reverse=reverse: getattr(lax, op)(x, axis=1, reverse=reverse),
            distinct((2, 5, 2)),
            active=(0,),
            name="_reverse" if reverse else "",
        )
    ),
    *rows("cumsum", "i32 c64", lambda x: lax.cumsum(x, axis=0), ints(-9, 9), name="_other"),
    *rows("cumprod", "c64", lambda x: lax.cumprod(x, axis=0, reverse=True), X, active=(0,), name="_other"),
    *rows("sort", "f32 f64 bf16", lambda x: lax.sort(x, dimension=0), distinct(), active=(0,)),
    *rows("sort", "i32 u8 bool", lambda x: lax.sort(x, dimension=1), whole_range(), name="_int"),
    *rows(
        "sort",
        "f32",
        lambda x: lax.sort(x),
        given([2.0, float("nan"), -0.0, 0.0, -float("inf")]),
        name="_special",
    ),
    *rows(
        "sort",
        WIDE,
        lambda *xs: lax.sort(xs, dimension=1, num_keys=1),
        distinct(),
        X,
        active=(0, 1),
        name="_values",
    ),
    *rows(
        "sort",
        "f32",
        lambda *xs: lax.sort(xs, dimension=0, num_keys=2),
        ints(0, 2),
        distinct(),
        X,
        active=(1, 2),
        name="_two_keys",
    ),
]

_TOP = [
    *rows("top_k", "f32 f64 bf16", lambda x: lax.top_k(x, 2), distinct(), active=(0,)),
    *rows("top_k", WIDE, lambda x: lax.top_k(x, 3, axis=0), distinct((4, 2, 3)), active=(0,), name="_axis"),
    *rows("top_k", "f32", lambda x: lax.top_k(x, 0), distinct(), active=(0,), name="_none"),
    *rows("top_k", "i32 u8 bool", lambda x: lax.top_k(x, 3), whole_range(), name="_int"),
    *rows(
        "top_k",
        "f32",
        lambda x: lax.top_k(x, 7),
        given([0.0, float("nan"), -0.0, 3.0, -float("nan"), float("inf"), 3.0]),
        name="_special",
    ),
    *(
        case
        for op in (lax.approx_max_k, lax.approx_min_k)
        for case in rows(
            "top_k",
            WIDE,
            lambda x, op=op: (op(x, 2), op(x, 2, reduction_dimension=0, aggregate_to_topk=False)),
            distinct(),
            active=(0,),
            name=f"_{op.__name__}",
        )
    ),
]

_AB = real(-2, 2, (2, 3, 4)), real(-2, 2, (2, 4, 5))


def _dot(contract, batch, **more):
    return lambda x, y: lax.dot_general(x, y, (contract, batch), **more)


_LINALG = [
    *rows("dot_general", ANY, _dot(((1,), (0,)), ((), ())), X, real(-2, 2, (4, 2)), active=(0, 1)),
    *rows("dot_general", "f32 f64 c64", _dot(((2,), (1,)), ((0,), (0,))), *_AB, active=(0, 1), name="_batch"),
    *rows(
        "dot_general",
        WIDE,
        _dot(((0, 2), (2, 1)), ((1,), (0,))),
        real(-2, 2, (2, 3, 4)),
        real(-2, 2, (3, 4, 2)),
        active=(0, 1),
        name="_two",
    ),
    *rows(
        "dot_general",
        "f32",
        _dot(((), ()), ((), ())),
        real(-2, 2, (3,)),
        real(-2, 2, (2,)),
        active=(0, 1),
        name="_outer",
    ),
    *rows(
        "dot_general",
        WIDE,
        _dot(((0,), (0,)), ((), ())),
        real(-2, 2, (3,)),
        real(-2, 2, (3,)),
        active=(0, 1),
        name="_inner",
    ),
    *rows(
        "dot_general",
        "f32",
        _dot(((1,), (0,)), ((), ()), precision="highest"),
        X,
        real(-2, 2, (4, 2)),
        active=(0, 1),
        name="_highest",
    ),
    *rows(
        "dot_general",
        "bf16 f16",
        _dot(((1,), (0,)), ((), ()), preferred_element_type=jnp.float32),
        X,
        real(-2, 2, (4, 2)),
        active=(0, 1),
        name="_preferred",
    ),
    *rows("dot_general", "i32 u8", _dot(((1,), (0,)), ((), ())), ints(0, 9), ints(0, 9, (4, 2)), name="_int"),
    *rows(
        "dot_general",
        "i8",
        _dot(((1,), (0,)), ((), ()), preferred_element_type=jnp.int32),
        ints(-9, 9),
        ints(-9, 9, (4, 2)),
        name="_widened",
    ),
    *rows("dot_general", "bool", _dot(((1,), (0,)), ((), ())), bools(), bools((4, 2)), name="_bool"),
]

_LEFT, _RIGHT = real(-2, 2, (6, 3)), real(-2, 2, (4, 3, 2))


def _ragged(contract, batch, ragged, group=()):
    numbers = lax.RaggedDotDimensionNumbers((contract, batch), ragged, group)
    return lambda x, y, sizes: lax.ragged_dot_general(x, y, sizes, numbers)


def _in_group(sizes, rows_, dtype):
    """Which row is of which group: rows × groups."""
    ends = jnp.cumsum(sizes)
    row = jnp.arange(rows_)[:, None]
    return ((row >= ends - sizes) & (row < ends)).astype(dtype)


def _grouped(products: str):
    """What a ragged product is, in dense ones, which JAX differentiates and maps."""

    def f(x, y, sizes):
        return jnp.einsum(products, _in_group(sizes, x.shape[0], x.dtype), x, y)

    return f


# Groups without rows, fewer rows than there are, and more.
_RAGGED = [
    *(
        case
        for n, sizes in enumerate(([1, 0, 3, 2], [0, 2, 0, 1], [4, 4, 0, 2]))
        for case in rows(
            "dot_general",
            "f32 f64 c64" if n == 0 else "f64",
            lax.ragged_dot,
            _LEFT,
            _RIGHT,
            given(sizes, "i32"),
            active=(0, 1),
            exact=False,
            reference=_grouped("mg,mk,gkn->mn"),
            name=f"_ragged_{n}",
        )
    ),
    *rows(
        "dot_general",
        WIDE,
        _ragged(((0,), (0,)), ((), ()), [0]),
        _LEFT,
        real(-2, 2, (6, 2)),
        given([1, 0, 3, 2], "i32"),
        active=(0, 1),
        exact=False,
        reference=_grouped("kg,km,kn->gmn"),
        name="_ragged_contracting",
    ),
    *rows(
        "dot_general",
        WIDE,
        _ragged(((2,), (1,)), ((0,), (0,)), [0]),
        real(-2, 2, (3, 2, 4)),
        real(-2, 2, (3, 4, 2)),
        given([1, 2], "i32"),
        active=(0, 1),
        exact=False,
        reference=lambda x, y, sizes: jnp.einsum("bmk,bkn->bmn", x, y),
        name="_ragged_batch",
    ),
    *rows(
        "dot_general",
        "f64",
        lax.ragged_dot,
        real(-2, 2, (0, 3)),
        _RIGHT,
        given([0, 0, 0, 0], "i32"),
        active=(0, 1),
        exact=False,
        reference=_grouped("mg,mk,gkn->mn"),
        name="_ragged_empty",
    ),
]

CASES = [*_RAGGED, *_REDUCTIONS, *_TOP, *_LINALG]
