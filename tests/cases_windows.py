"""Cases of convolutions and windowed reductions."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from casekit import ANY, WIDE, distinct, ints, real, rows
from jax import lax


def _convolution(x_shape, w_shape, strides, padding, dtypes="f32", *, name, **more):
    def f(x, w):
        return lax.conv_general_dilated(x, w, strides, padding, **more)

    x, w = real(-2, 2, x_shape), real(-2, 2, w_shape)
    return rows("conv_general_dilated", dtypes, f, x, w, active=(0, 1), name=name)


X = real(-2, 2)
CUBE = real(-2, 2, (2, 3, 4))
_NHWC = ("NHWC", "HWIO", "NHWC")

_CONVOLUTIONS = [
    *_convolution((2, 3, 5, 4), (4, 3, 3, 2), (1, 1), "SAME", ANY, name=""),
    *_convolution((1, 2, 7), (3, 2, 2), (2,), [(1, 2)], "f32 c64", name="_strided"),
    *_convolution((1, 2, 5), (3, 2, 2), (1,), [(-1, -1)], name="_negative"),
    *_convolution(
        (2, 2, 4), (3, 2, 3), (3,), [(1, 2)], lhs_dilation=(2,), rhs_dilation=(2,), name="_dilated"
    ),
    *_convolution((2, 5, 4, 3), (3, 2, 3, 2), (2, 1), "SAME", dimension_numbers=_NHWC, name="_nhwc"),
    *_convolution(
        (2, 3, 5), (2, 5, 4), (2,), "SAME", dimension_numbers=("NWC", "WIO", "CNW"), name="_other_order"
    ),
    *_convolution((2, 6, 4), (4, 3, 2), (1,), "VALID", feature_group_count=2, name="_feature_groups"),
    *_convolution((2, 3, 4), (6, 1, 2), (2,), "SAME", feature_group_count=3, name="_depthwise"),
    *_convolution((4, 3, 4), (4, 3, 2), (1,), "VALID", batch_group_count=2, name="_batch_groups"),
    *_convolution(
        (4, 3, 5),
        (6, 3, 2),
        (2,),
        [(2, 1)],
        lhs_dilation=(2,),
        rhs_dilation=(2,),
        batch_group_count=2,
        name="_batch_groups_dilated",
    ),
    *_convolution((2, 3), (4, 3), (), [], name="_no_space"),
    *_convolution((1, 1, 3, 4, 2), (1, 1, 2, 2, 2), (1, 2, 1), "SAME", name="_volume"),
    *_convolution((1, 2, 2), (3, 2, 4), (1,), "VALID", name="_no_place"),
    *_convolution((2, 2, 4), (3, 2, 2), (1,), "VALID", precision="highest", name="_highest"),
    *rows(
        "conv_general_dilated",
        WIDE,
        lambda x, w: lax.conv_transpose(x, w, (2, 2), "SAME"),
        real(-2, 2, (1, 2, 3, 2)),
        real(-2, 2, (3, 3, 2, 2)),
        active=(0, 1),
        name="_transpose",
    ),
    *rows(
        "conv_general_dilated",
        "f32",
        lambda x, w: jnp.convolve(x, w, mode="full"),
        real(-2, 2, (5,)),
        real(-2, 2, (3,)),
        active=(0, 1),
        name="_convolve",
    ),
    *rows(
        "conv_general_dilated",
        "bf16 f16",
        lambda x, w: lax.conv_general_dilated(x, w, (1,), "SAME", preferred_element_type=jnp.float32),
        real(-2, 2, (1, 2, 4)),
        real(-2, 2, (3, 2, 2)),
        active=(0, 1),
        name="_preferred",
    ),
    *rows(
        "conv_general_dilated",
        "i8",
        lambda x, w: lax.conv_general_dilated(x, w, (1,), "SAME", preferred_element_type=jnp.int32),
        ints(-9, 9, (1, 2, 4)),
        ints(-9, 9, (3, 2, 2)),
        name="_int",
    ),
]

_INIT = {lax.add: 0, lax.max: -jnp.inf, lax.min: jnp.inf}


def _pool(reduce, *window):
    """window, strides, padding, base dilation, window dilation."""
    return lambda x: lax.reduce_window(x, _INIT[reduce], reduce, *window)


_OVERLAPPING = (2, 3), (1, 2), [(1, 0), (1, 1)]
_POOLS = {lax.add: "reduce_window_sum", lax.max: "reduce_window_max", lax.min: "reduce_window_min"}

_REDUCTIONS = [
    *(
        c
        for reduce, op in _POOLS.items()
        for name, more in {
            "": _OVERLAPPING,
            "_same": ((2, 2), (2, 2), "SAME"),
            "_gaps": ((2, 2), (1, 2), [(0, 1), (2, 0)], (2, 3)),
            "_negative": ((2, 2), (1, 1), [(-1, 1), (0, -1)]),
        }.items()
        # JAX's own transpose of extrema takes no negative padding.
        if name != "_negative" or reduce is lax.add
        for c in rows(op, WIDE, _pool(reduce, *more), distinct((4, 5)), active=(0,), name=name)
    ),
    *(
        c
        for reduce, op in _POOLS.items()
        for c in rows(
            op,
            "f32",
            _pool(reduce, (2,), (1,), "VALID", (1,), (3,)),
            distinct((6,)),
            active=(0,),
            name="_window_gaps",
            reverse=reduce is lax.add,
        )
    ),
    *(
        c
        for reduce, op in _POOLS.items()
        for c in rows(
            op, "f32", _pool(reduce, (2, 2), (1, 1), "VALID"), ints(0, 2), active=(0,), name="_ties"
        )
    ),
    *rows(
        "reduce_window_sum",
        "bf16 c64 i32",
        _pool(lax.add, *_OVERLAPPING),
        ints(-5, 5, (4, 5)),
        active=(0,),
        name="_other",
    ),
    *rows(
        "select_and_gather_add",
        "f32 f64",
        lambda t, x: jax.jvp(_pool(lax.max, *_OVERLAPPING), (x,), (t,))[1],
        real(-2, 2, (4, 5)),
        distinct((4, 5)),
        active=(0, 1),
    ),
    *rows(
        "select_and_scatter_add",
        "f32 f64",
        lambda t, x: jax.vjp(_pool(lax.min, *_OVERLAPPING), x)[1](t)[0],
        real(-2, 2, (4, 3)),
        distinct((4, 5)),
        active=(0, 1),
    ),
]


def _log_add(a, b):
    return jnp.logaddexp(a, b)


def _times(a, b):
    """The product of complex numbers given as pairs."""
    return a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]


def _greater(a, b):
    """Of two pairs the one whose first is greater."""
    which = a[0] >= b[0]
    return lax.select(which, a[0], b[0]), lax.select(which, a[1], b[1])


_NONE = -jnp.inf

_OF_YOURS = [
    *rows(
        "program",
        WIDE,
        lambda x: lax.reduce(x, x.dtype.type(_NONE), _log_add, (0, 2)),
        CUBE,
        active=(0,),
        name="_reduce",
        exact=False,
    ),
    *rows(
        "program",
        "f32",
        lambda a, b: lax.reduce((a, b), (jnp.ones((), a.dtype), jnp.zeros((), a.dtype)), _times, (1,)),
        real(-2, 2, (2, 7)),
        real(-2, 2, (2, 7)),
        active=(0, 1),
        name="_reduce_pairs",
        exact=False,
    ),
    *rows(
        "program",
        "f32",
        lambda x, i: lax.reduce((x, i), (x.dtype.type(_NONE), jnp.int32(-1)), _greater, (0,)),
        distinct((5, 3)),
        ints(0, 99, (5, 3), "i32"),
        name="_reduce_with_places",
        exact=False,
    ),
    *rows(
        "program",
        "f32",
        lambda x: lax.reduce(x[:0], x.dtype.type(3), _log_add, (0,)),
        X,
        name="_reduce_nothing",
        exact=False,
    ),
    *rows(
        "program",
        WIDE,
        lambda x: lax.reduce_window(x, x.dtype.type(1), lax.mul, (2, 2), (1, 2), [(1, 0), (0, 1)]),
        real(0.5, 2, (3, 4)),
        name="_window_product",
        exact=False,
    ),
    *rows(
        "program",
        "f32",
        lambda x: lax.reduce_window(x, x.dtype.type(_NONE), _log_add, (3,), (2,), "VALID", (2,), (2,)),
        real(-2, 2, (6,)),
        name="_window_log_add",
        exact=False,
    ),
]

CASES = [*_CONVOLUTIONS, *_REDUCTIONS, *_OF_YOURS]
