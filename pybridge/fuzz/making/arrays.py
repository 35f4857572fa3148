"""Random equations that move, index, reduce and sort arrays."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from ...ir.numerals import COMPLEX, INTEGERS
from ...ir.program import constant_ref
from ...ir.types import TensorType, Var
from .growing import Growth, Unfit, sizes_of

_Fits = Callable[[TensorType], bool]


def _ranked(g: Growth, fits: _Fits = lambda t: True) -> Var:
    """An array with axes, none of them empty."""
    return g.pick(lambda t: t.rank > 0 and 0 not in t.shape and fits(t))


def _ordered(t: TensorType) -> bool:
    return t.dtype not in COMPLEX and t.dtype != "bool"


def _numeric(t: TensorType) -> bool:
    return t.dtype != "bool"


def _axis(g: Growth, x: Var) -> int:
    return g.rng.randrange(x.type.rank)


def _axes(g: Growth, x: Var) -> tuple[int, ...]:
    return tuple(k for k in range(x.type.rank) if g.chance(0.5))


def _broadcast(g: Growth) -> None:
    x = g.pick()
    shape, dims = list(sizes_of(x.type)), list(range(x.type.rank))
    for _ in range(g.rng.randint(1, 2)):
        at = g.rng.randint(0, len(shape))
        shape.insert(at, g.rng.choice([1, 2, 3]))
        dims = [d + (d >= at) for d in dims]
    g.one("broadcast_in_dim", x, shape=tuple(shape), dims=tuple(dims))


def _reshape(g: Growth) -> None:
    x = g.pick()
    size = int(np.prod(sizes_of(x.type)))
    splits = [(k, size // k) for k in (2, 3, 4, 5) if size % k == 0 and size]
    g.one("reshape", x, shape=g.rng.choice([(size,), (1, size), sizes_of(x.type)[::-1], *splits]))


def _squeeze(g: Growth) -> None:
    x = g.pick(lambda t: 1 in t.shape)
    g.one("squeeze", x, dims=tuple(k for k, n in enumerate(sizes_of(x.type)) if n == 1))


def _transpose(g: Growth) -> None:
    x = g.pick(lambda t: t.rank > 1)
    g.one("transpose", x, perm=tuple(g.rng.sample(range(x.type.rank), x.type.rank)))


def _rev(g: Growth) -> None:
    x = _ranked(g)
    g.one("rev", x, dims=_axes(g, x))


def _concatenate(g: Growth) -> None:
    x = _ranked(g)
    parts = [x, *(g.array(x.type) for _ in range(g.rng.randint(1, 2)))]
    g.one("concatenate", *parts, dim=_axis(g, x))


def _pad(g: Growth) -> None:
    x = g.pick(lambda t: t.rank > 0)
    low, high = ([g.rng.randint(-1 if n > 2 else 0, 2) for n in sizes_of(x.type)] for _ in range(2))
    interior = tuple(g.rng.choice([0, 0, 1]) for _ in low)
    value = g.like(TensorType(x.type.dtype))
    g.one("pad", x, value, low=tuple(low), high=tuple(high), interior=interior)


def _slice(g: Growth) -> None:
    x = g.pick(lambda t: t.rank > 0)
    start = tuple(g.rng.randint(0, n // 2) for n in sizes_of(x.type))
    limit = tuple(g.rng.randint(s, n) for s, n in zip(start, sizes_of(x.type), strict=True))
    g.one("slice", x, start=start, limit=limit, strides=tuple(g.rng.randint(1, 3) for _ in start))


def _split(g: Growth) -> None:
    x = _ranked(g)
    axis = _axis(g, x)
    first = g.rng.randint(0, sizes_of(x.type)[axis])
    g.add("split", x, axis=axis, sizes=(first, sizes_of(x.type)[axis] - first))


def _iota(g: Growth) -> None:
    shape = g.pick(lambda t: t.rank > 0).type.shape
    dtype = g.rng.choice(["i32", "u8", "f32", "f64", "i64"])
    g.one("iota", dtype=dtype, shape=shape, dim=g.rng.randrange(len(shape)))


def _constant(g: Growth) -> None:
    type_ = g.pick(lambda t: t.dtype in ("f32", "f64", "i32")).type
    size = int(np.prod(sizes_of(type_)))
    values = [g.rng.uniform(-1, 1) if type_.inexact else g.rng.randint(0, 4) for _ in range(size)]
    if size > 64:
        array = np.asarray(values, {"f32": np.float32, "f64": np.float64, "i32": np.int32}[type_.dtype])
        array = array.reshape(sizes_of(type_))
        ref = constant_ref(array, type_)
        g.constants[ref] = array
        g.constant(type_, ref=ref)
    else:
        rounded = [float(np.float32(v)) if type_.inexact else v for v in values]
        g.constant(type_, value=tuple(rounded))


def _barrier(g: Growth) -> None:
    g.add("optimization_barrier", g.pick(), g.pick())


# Indexing


def _starts(g: Growth, x: Var) -> list:
    dtype = g.rng.choice(["i32", "i32", "i64", "u8"])
    return [g.like(TensorType(dtype)) for _ in sizes_of(x.type)]


def _dynamic_slice(g: Growth) -> None:
    x = g.pick(lambda t: t.rank > 0)
    sizes = tuple(g.rng.randint(min(1, n), n) for n in sizes_of(x.type))
    g.one("dynamic_slice", x, *_starts(g, x), sizes=sizes)


def _dynamic_update_slice(g: Growth) -> None:
    x = g.pick(lambda t: t.rank > 0)
    update = TensorType(x.type.dtype, tuple(g.rng.randint(min(1, n), n) for n in sizes_of(x.type)))
    written = g.one("dynamic_update_slice", x, g.array(update), *_starts(g, x))
    if g.chance(0.4):  # only where a condition holds, as `jnp.where` has it
        holds = g.filled(g.like(TensorType("bool")), x.type)
        g.one("select_n", holds, *((x, written) if g.chance(0.5) else (written, x)))


def _places(g: Growth, x: Var) -> tuple[list[int], list[int], tuple[int, ...], Var]:
    """Indexed axes, sizes of the windows, the shape of the batch, and indices of shape (*batch, axes)."""
    rank = x.type.rank
    axes = g.rng.sample(range(rank), g.rng.randint(1, min(2, rank)))
    sizes = [g.rng.choice([1, 1, n, max(1, n - 1)]) for n in sizes_of(x.type)]
    batch = g.rng.choice([(), (2,), (3,), (2, 2)])
    type_ = TensorType(g.rng.choice(["i32", "i32", "i64", "u8"]), (*batch, len(axes)))
    indices = g.array(type_)
    if not isinstance(indices, Var):
        raise Unfit
    return axes, sizes, batch, indices


def _windows(g: Growth, x: Var, sizes: list[int], batch: tuple[int, ...], axes: list[int]):
    """The axes that are left out, and where those of the window stand in the result."""
    dropped = [k for k, n in enumerate(sizes) if n == 1 and g.chance(0.6)]
    kept = x.type.rank - len(dropped)
    offsets = tuple(sorted(g.rng.sample(range(kept + len(batch)), kept)))
    return tuple(dropped), offsets


def _gather(g: Growth) -> None:
    x = _ranked(g)
    axes, sizes, batch, indices = _places(g, x)
    dropped, offsets = _windows(g, x, sizes, batch, axes)
    g.one(
        "gather",
        x,
        indices,
        offset_dims=offsets,
        collapsed_slice_dims=dropped,
        start_index_map=tuple(axes),
        operand_batching_dims=(),
        start_indices_batching_dims=(),
        slice_sizes=tuple(sizes),
        mode=g.rng.choice(["clip", "fill"]),
        fill_value=g.rng.choice([None, 1]) if x.type.inexact else 0,
        sorted=False,
        unique=False,
    )


def _scatter(op: str, g: Growth) -> None:
    """One window where the order of several would count. JAX's derivatives of minima forget to clip."""
    x = _ranked(g, _numeric if op in ("scatter_add", "scatter_sub", "scatter_mul") else _ordered)
    axes, sizes, batch, indices = _places(g, x)
    if op in ("scatter", "scatter_mul"):  # one window, for neither JAX has derivatives where they overlap
        batch = ()
        whole = g.conform(indices, TensorType(indices.type.dtype, (len(axes),)))
        indices = whole if isinstance(whole, Var) else indices
    dropped, offsets = _windows(g, x, sizes, batch, axes)
    shape: list[int] = []
    window, rest = iter([n for k, n in enumerate(sizes) if k not in dropped]), iter(batch)
    for k in range(len(offsets) + len(batch)):
        shape.append(next(window if k in offsets else rest))
    g.one(
        op,
        x,
        indices,
        g.array(TensorType(x.type.dtype, tuple(shape))),
        update_window_dims=offsets,
        inserted_window_dims=dropped,
        scatter_dims_to_operand_dims=tuple(axes),
        operand_batching_dims=(),
        scatter_indices_batching_dims=(),
        mode="fill" if op in ("scatter_min", "scatter_max") else g.rng.choice(["clip", "fill"]),
        sorted=False,
        unique=op in ("scatter", "scatter_mul"),
    )


# Reductions, sorting


def _reduce(op: str, g: Growth) -> None:
    x = _ranked(g, _ordered if op in ("reduce_max", "reduce_min") else _numeric)
    g.one(op, g.tame(x) if op == "reduce_prod" else x, axes=_axes(g, x))


def _reduce_bits(op: str, g: Growth) -> None:
    fits = (lambda t: t.dtype in INTEGERS) if op == "reduce_xor" else (lambda t: t.dtype == "bool")
    g.one(op, (x := _ranked(g, fits)), axes=_axes(g, x))


def _arg(op: str, g: Growth) -> None:
    x = _ranked(g, _ordered)
    g.one(op, x, axis=_axis(g, x), dtype=g.rng.choice(["i32", "i64", "u8"]))


def _cumulative(op: str, g: Growth) -> None:
    x = _ranked(g, (lambda t: t.dtype in ("f32", "f64")) if op == "cumlogsumexp" else _ordered)
    g.one(op, g.tame(x) if op == "cumprod" else x, axis=_axis(g, x), reverse=g.chance(0.5))


def _sort(g: Growth) -> None:
    x = _ranked(g, _ordered)
    others = [g.array(TensorType(g.pick().type.dtype, sizes_of(x.type))) for _ in range(g.rng.randint(0, 2))]
    g.add("sort", x, *others, dim=_axis(g, x), stable=True, num_keys=1)


def _top_k(g: Growth) -> None:
    x = _ranked(g, _ordered)
    axis = _axis(g, x)
    g.add("top_k", x, k=g.rng.randint(1, sizes_of(x.type)[axis]), axis=axis)


# Windows


def _sliding(g: Growth, x: Var, dilated: bool = True) -> dict:
    shape = sizes_of(x.type)
    window = tuple(g.rng.randint(1, min(3, n)) for n in shape)
    made = {
        "window": window,
        "strides": tuple(g.rng.randint(1, 2) for _ in shape),
        "low": tuple(g.rng.randint(0, w - 1) for w in window),
        "high": tuple(g.rng.randint(0, w - 1) for w in window),
    }
    if not dilated:
        return made
    dilation = g.rng.choice([1, 1, 1, 2])
    return made | {"base_dilation": (1,) * len(shape), "window_dilation": (dilation,) * len(shape)}


def _reduce_window(op: str, g: Growth) -> None:
    x = _ranked(g, lambda t: t.dtype in ("f32", "f64", "bf16", "i32"))
    g.one(op, x, **_sliding(g, x))


def _select_and_gather(g: Growth) -> None:
    x = _ranked(g, lambda t: t.dtype in ("f32", "f64"))
    g.one("select_and_gather_add", g.array(x.type), x, select=g.rng.choice(["ge", "le"]), **_sliding(g, x))


def _select_and_scatter(g: Growth) -> None:
    """JAX has no derivative of it by the operand that selects."""
    x = _ranked(g, lambda t: t.dtype in ("f32", "f64"))
    sliding = _sliding(g, x, dilated=False)
    sizes = zip(sizes_of(x.type), *(sliding[k] for k in ("window", "strides", "low", "high")), strict=True)
    shape = tuple((n + low + high - w) // s + 1 for n, w, s, low, high in sizes)
    updates = g.array(TensorType(x.type.dtype, shape))
    still = g.one("stop_gradient", x)
    g.one("select_and_scatter_add", updates, still, select=g.rng.choice(["ge", "le"]), **sliding)


def _fft(g: Growth) -> None:
    kind = g.rng.choice(["fft", "ifft", "rfft", "irfft"])
    dtypes = ("f32", "f64") if kind == "rfft" else ("c64", "c128")
    x = _ranked(g, lambda t: t.dtype in dtypes and sizes_of(t)[-1] > (kind == "irfft"))
    n = sizes_of(x.type)[-1]
    g.one("fft", x, fft_type=kind, fft_lengths=(2 * (n - 1) if kind == "irfft" else n,))


MAKERS: dict[str, Callable[[Growth], None]] = {
    "broadcast_in_dim": _broadcast,
    "reshape": _reshape,
    "squeeze": _squeeze,
    "transpose": _transpose,
    "rev": _rev,
    "concatenate": _concatenate,
    "pad": _pad,
    "slice": _slice,
    "split": _split,
    "iota": _iota,
    "constant": _constant,
    "optimization_barrier": _barrier,
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
    "gather": _gather,
    **{
        op: partial(_scatter, op)
        for op in ("scatter", "scatter_add", "scatter_sub", "scatter_mul", "scatter_min", "scatter_max")
    },
    **{op: partial(_reduce, op) for op in ("reduce_sum", "reduce_prod", "reduce_max", "reduce_min")},
    **{op: partial(_reduce_bits, op) for op in ("reduce_and", "reduce_or", "reduce_xor")},
    **{op: partial(_arg, op) for op in ("argmax", "argmin")},
    **{op: partial(_cumulative, op) for op in ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp")},
    "sort": _sort,
    "top_k": _top_k,
    **{
        op: partial(_reduce_window, op)
        for op in ("reduce_window_sum", "reduce_window_max", "reduce_window_min")
    },
    "select_and_gather_add": _select_and_gather,
    "select_and_scatter_add": _select_and_scatter,
    "fft": _fft,
}
