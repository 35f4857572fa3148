"""Cases of the primitives that move and index arrays."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from casekit import ANY, WIDE, Case, distinct, given, ints, real, rows, whole_range
from jax import lax

X = real(-2, 2)
CUBE = real(-2, 2, (2, 3, 4))

_STRUCTURAL = [
    *rows("broadcast_in_dim", ANY, lambda x: lax.broadcast_in_dim(x, (2, 3, 5, 4), (1, 3)), X, active=(0,)),
    *rows(
        "broadcast_in_dim",
        WIDE,
        lambda x: lax.broadcast_in_dim(x, (3, 2), ()),
        real(-2, 2, ()),
        active=(0,),
        name="_scalar",
    ),
    *rows(
        "broadcast_in_dim",
        "f32 i32",
        lambda x: lax.broadcast_in_dim(x, (3, 2), (0, 1)),
        ints(0, 9, (3, 1)),
        name="_one",
    ),
    *rows("reshape", f"{ANY}", lambda x: lax.reshape(x, (2, 6)), X, active=(0,)),
    *rows("reshape", "f32", lambda x: lax.reshape(x, (12,), (1, 0)), X, active=(0,), name="_order"),
    *rows("reshape", "f32", lambda x: lax.reshape(x, ()), real(-2, 2, (1, 1)), active=(0,), name="_scalar"),
    *rows("squeeze", WIDE, lambda x: lax.squeeze(x, (0, 2)), real(-2, 2, (1, 3, 1, 2)), active=(0,)),
    *rows("broadcast_in_dim", "f32", lambda x: lax.expand_dims(x, (0, 2)), X, active=(0,), name="_expand"),
    *rows("transpose", ANY, lambda x: lax.transpose(x, (2, 0, 1)), CUBE, active=(0,)),
    *rows("rev", ANY, lambda x: lax.rev(x, (0, 2)), CUBE, active=(0,)),
    *rows(
        "concatenate", ANY, lambda *xs: lax.concatenate(xs, 1), X, real(-2, 2, (3, 1)), X, active=(0, 1, 2)
    ),
    *rows(
        "concatenate",
        "bool i8",
        lambda *xs: lax.concatenate(xs, 0),
        whole_range(),
        whole_range(),
        name="_ints",
    ),
    *rows("pad", ANY, lambda x, v: lax.pad(x, v, [(1, 2, 1), (0, 3, 2)]), X, real(-2, 2, ()), active=(0, 1)),
    *rows(
        "pad",
        WIDE,
        lambda x, v: lax.pad(x, v, [(-1, 2, 1), (2, -2, 0)]),
        X,
        real(-2, 2, ()),
        active=(0, 1),
        name="_negative",
    ),
    *rows(
        "pad",
        "i32 bool",
        lambda x, v: lax.pad(x, v, [(0, 1, 0), (-1, 0, 1)]),
        ints(0, 2),
        ints(0, 2, ()),
        name="_ints",
    ),
    *rows("slice", ANY, lambda x: lax.slice(x, (0, 1), (3, 3)), X, active=(0,)),
    *rows(
        "slice",
        WIDE,
        lambda x: lax.slice(x, (1, 0, 0), (2, 3, 4), (1, 2, 3)),
        CUBE,
        active=(0,),
        name="_strided",
    ),
    *rows("slice", "f32", lambda x: lax.slice(x, (1, 1), (1, 4)), X, active=(0,), name="_empty"),
    *rows("split", WIDE, lambda x: lax.split(x, (1, 0, 3), 1), X, active=(0,)),
    *rows(
        "iota",
        "f32 i32 u8 f16",
        lambda x: lax.broadcasted_iota(x.dtype, (2, 3, 2), 1) + x,
        ints(0, 3, (2, 3, 2)),
        exact=False,
    ),
    *rows(
        "constant",
        "f32 f64 c64 bf16 i32 bool",
        lambda x: lax.concatenate([x, np.ones((2, 4), x.dtype)], 0),
        ints(0, 2),
    ),
    *rows(
        "constant",
        WIDE,
        lambda x: x * np.linspace(0, 1, 100).astype(x.dtype),
        real(-2, 2, (100,)),
        active=(0,),
        name="_large",
    ),
    *rows("optimization_barrier", WIDE, lambda x, y: lax.optimization_barrier((x, y)), X, X, active=(0, 1)),
    *rows("concatenate", "f32", lambda x, y: jnp.stack([x, y], 1), X, X, active=(0, 1), name="_stack"),
    *rows("split", "f32", lambda x: jnp.unstack(x, axis=1), X, active=(0,), name="_unstack"),
    *rows("broadcast_in_dim", "f32 i32", lambda x: jnp.tile(x, (2, 3)), ints(0, 9), name="_tile"),
]

_INDEX = ints(-2, 6, (), "i32")
_BELOW = ints(-5, -3, (), "i32")  # below the first row still when counted from the last
_PAIRS = given([[0, 1], [2, 3], [5, -1]], "i32")
_ROWS = given([[2], [0], [2], [7]], "i32")
_UNIQUE = given([[2], [0]], "i32")

_GATHER_ROWS = lax.GatherDimensionNumbers((1,), (0,), (0,))
_GATHER_POINTS = lax.GatherDimensionNumbers((), (0, 1), (0, 1))
_GATHER_WINDOWS = lax.GatherDimensionNumbers((0, 2), (), (1, 0))
_GATHER_BATCHED = lax.GatherDimensionNumbers((1,), (1,), (1,), (0,), (0,))
_SCATTER_ROWS = lax.ScatterDimensionNumbers((1,), (0,), (0,))
_SCATTER_POINTS = lax.ScatterDimensionNumbers((), (0, 1), (0, 1))
_SCATTER_WINDOWS = lax.ScatterDimensionNumbers((0, 2), (), (1, 0))
_SCATTER_BATCHED = lax.ScatterDimensionNumbers((1,), (1,), (1,), (0,), (0,))


def _gather(numbers, sizes, mode, **more):
    return lambda x, i: lax.gather(x, i, numbers, sizes, mode=mode, **more)


def _scatter(op, numbers, mode, unique=False):
    return lambda x, i, u: getattr(lax, op)(x, i, u, numbers, mode=mode, unique_indices=unique)


def _one_after_another(x, i):
    """What applying a function at each index means, in what JAX differentiates."""
    for k in i:
        x = x.at[k].set(jnp.sin(x[k]) * x[k])
    return x


def _applied(x, i):
    return x.at[i].apply(lambda v: jnp.sin(v) * v)


_APPLIED = [
    *rows(
        "scatter",
        "f32 f64 c64",
        _applied,
        real(-2, 2, (5, 3)),
        given([0, 2, 2, 4, 2], "i32"),
        active=(0,),
        exact=False,  # XLA's fusions round complex products otherwise
        reverse=False,
        reference=_one_after_another,
        name="_applied",
    ),
    *rows(
        "scatter",
        "f64",
        lambda x: x.at[1:4, ::2].apply(jnp.sin).at[0].apply(jnp.sqrt),
        real(0.5, 2, (5, 3)),
        active=(0,),
        reference=lambda x: (y := x.at[1:4, ::2].set(jnp.sin(x[1:4, ::2]))).at[0].set(jnp.sqrt(y[0])),
        name="_applied_once",
    ),
    *rows(
        "scatter",
        "f64",
        lambda x, i: x.at[i].apply(jnp.exp, mode="drop", unique_indices=True),
        real(0.5, 2, (5, 3)),
        given([4, 9, 1], "i32"),
        active=(0,),
        reference=lambda x, i: x.at[i].set(jnp.exp(x[i]), mode="drop", unique_indices=True),
        name="_applied_inside",
    ),
]


def _scatters(op: str) -> list[Case]:
    linear = op in ("scatter", "scatter_add", "scatter_sub")
    # Of equal elements min and max share the derivative, and mul has one only for distinct places.
    of = (0, 2) if linear else ()
    x, rows_, points = distinct(), distinct((4, 4), 0.17), distinct((3,), 0.17)
    return [
        *rows(
            op,
            "f32 f64 i32",
            _scatter(op, _SCATTER_ROWS, "clip"),
            x,
            _ROWS,
            rows_,
            active=of if op != "scatter" else (),
            name="_clip",
        ),
        *rows(
            op,
            WIDE,
            _scatter(op, _SCATTER_ROWS, "fill"),
            x,
            _ROWS,
            rows_,
            active=of if op != "scatter" else (),
            name="_fill",
        ),
        *rows(
            op,
            WIDE,
            _scatter(op, _SCATTER_ROWS, "promise_in_bounds", True),
            x,
            _UNIQUE,
            distinct((2, 4), 0.17),
            active=(0, 2),
            name="_unique",
        ),
        *rows(
            op,
            "f32 bf16",
            _scatter(op, _SCATTER_POINTS, "fill", True),
            x,
            _PAIRS,
            points,
            active=(0, 2),
            name="_points",
        ),
        *rows(
            op,
            "f64",
            _scatter(op, _SCATTER_WINDOWS, "clip"),
            x,
            _PAIRS,
            distinct((2, 3, 2), 0.17),
            active=of if linear and op != "scatter" else (),
            name="_windows",
        ),
        *rows(
            op,
            "f32",
            _scatter(op, _SCATTER_BATCHED, "clip", True),
            distinct((2, 4, 3)),
            given([[1], [3]], "i32"),
            distinct((2, 3), 0.17),
            active=(0, 2),
            name="_batched",
        ),
    ]


_INDEXING = [
    *rows(
        "dynamic_slice",
        "f32 f64 c64",
        lambda x, i, j: lax.dynamic_slice(x, (i, j), (2, 3)),
        X,
        _INDEX,
        _INDEX,
        active=(0,),
    ),
    *rows(
        "dynamic_slice",
        "f32",
        lambda x, i: lax.dynamic_slice(x, (i, np.int32(-5)), (2, 3)),
        X,
        _BELOW,
        active=(0,),
        name="_below",
    ),
    *rows(
        "dynamic_slice",
        "i8",
        lambda x, i: lax.dynamic_slice(x, (i, i), (1, 4)),
        whole_range(),
        ints(0, 3, (), "u8"),
        name="_u8",
    ),
    *rows(
        "dynamic_update_slice",
        "f32 f64 c64",
        lambda x, u, i, j: lax.dynamic_update_slice(x, u, (i, j)),
        X,
        real(-2, 2, (2, 1)),
        _INDEX,
        _INDEX,
        active=(0, 1),
    ),
    *rows(
        "dynamic_update_slice",
        "f32",
        lambda x, u, i: lax.dynamic_update_slice(x, u, (i, np.int32(-5))),
        X,
        real(-2, 2, (2, 1)),
        _BELOW,
        active=(0, 1),
        name="_below",
    ),
    *rows(
        "gather", "f32 f64 c64", _gather(_GATHER_ROWS, (1, 4), "clip"), X, _ROWS, active=(0,), name="_clip"
    ),
    *rows("gather", "f32 bf16", _gather(_GATHER_ROWS, (1, 4), "fill"), X, _ROWS, active=(0,), name="_fill"),
    *rows(
        "gather",
        "i32 bool u8",
        _gather(_GATHER_ROWS, (1, 4), "fill"),
        whole_range(),
        _ROWS,
        name="_fill_ints",
    ),
    *rows(
        "gather",
        WIDE,
        _gather(_GATHER_ROWS, (1, 3), "fill", fill_value=0.5),
        X,
        _ROWS,
        active=(0,),
        name="_fill_value",
    ),
    *rows(
        "gather",
        "i32 u8 bool",
        _gather(_GATHER_ROWS, (1, 3), "fill", fill_value=1.5),
        whole_range(),
        _ROWS,
        name="_fill_value_ints",
    ),
    *rows(
        "gather",
        WIDE,
        _gather(_GATHER_ROWS, (1, 4), "promise_in_bounds", unique_indices=True),
        X,
        _UNIQUE,
        active=(0,),
        name="_promise",
    ),
    *rows("gather", WIDE, _gather(_GATHER_POINTS, (1, 1), "fill"), X, _PAIRS, active=(0,), name="_points"),
    *rows("gather", WIDE, _gather(_GATHER_WINDOWS, (2, 2), "clip"), X, _PAIRS, active=(0,), name="_windows"),
    *rows(
        "gather",
        WIDE,
        _gather(_GATHER_BATCHED, (1, 1, 3), "clip"),
        real(-2, 2, (2, 4, 3)),
        given([[1], [3]], "i32"),
        active=(0,),
        name="_batched",
    ),
    *rows("gather", "f32", lambda x, i: x[i], X, given([2, -1, 0], "i32"), active=(0,), name="_numpy"),
    *(
        case
        for op in ("scatter", "scatter_add", "scatter_sub", "scatter_mul", "scatter_min", "scatter_max")
        for case in _scatters(op)
    ),
]

CASES = [*_STRUCTURAL, *_INDEXING, *_APPLIED]
