"""The operations that random functions are made of.

Each takes float64 arrays of any values and keeps them within a few units, away from poles: arguments are
bounded by tanh, made positive by `positive`, and products of many numbers are of numbers near one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st
from jax import lax
from jax.ad_checkpoint import checkpoint_name
from recipe_matrices import MATRICES, MATRICES_BINARY
from recipe_shapes import Shape, conform, positive

LARGEST = 96
"""No value has more elements."""


def _steps(x):
    """Small unsigned integers out of an array."""
    return jnp.floor(4 * lax.logistic(x)).astype(jnp.uint32)


# Of one operand, and of two of the same shape.

UNARY: dict[str, Callable] = {
    "sin": jnp.sin,
    "cos": jnp.cos,
    "tan": lambda x: jnp.tan(jnp.tanh(x)),
    "tanh": jnp.tanh,
    "logistic": lax.logistic,
    "exp": lambda x: jnp.exp(jnp.tanh(x)),
    "exp2": lambda x: jnp.exp2(jnp.sin(x)),
    "expm1": lambda x: jnp.expm1(jnp.sin(x)),
    "log": lambda x: jnp.log(positive(x)),
    "log1p": lambda x: jnp.log1p(positive(x)),
    "sqrt": lambda x: jnp.sqrt(positive(x)),
    "rsqrt": lambda x: lax.rsqrt(positive(x)),
    "cbrt": lambda x: jnp.cbrt(positive(x)),
    "square": lambda x: jnp.square(jnp.tanh(x)),
    "cube": lambda x: jnp.sin(x) ** 3,
    "inverse": lambda x: positive(x) ** -1,
    "asin": lambda x: jnp.arcsin(0.7 * jnp.tanh(x)),
    "acosh": lambda x: jnp.arccosh(1 + positive(x)),
    "asinh": jnp.arcsinh,
    "atanh": lambda x: jnp.arctanh(0.6 * jnp.sin(x)),
    "atan": jnp.arctan,
    "sinh": lambda x: jnp.sinh(jnp.tanh(x)),
    "cosh": lambda x: jnp.cosh(jnp.tanh(x)),
    "erf": lax.erf,
    "erfc": lax.erfc,
    "erf_inv": lambda x: lax.erf_inv(0.5 * jnp.tanh(x)),
    "lgamma": lambda x: lax.lgamma(1 + positive(x)),
    "digamma": lambda x: lax.digamma(1 + positive(x)),
    "bessel_i0e": lax.bessel_i0e,
    "bessel_i1e": lax.bessel_i1e,
    "igamma": lambda x: lax.igamma(jnp.full_like(x, 1.3), positive(x)),
    "igammac": lambda x: lax.igammac(jnp.full_like(x, 0.7), positive(x)),
    "betainc": lambda x: lax.betainc(
        jnp.full_like(x, 1.3), jnp.full_like(x, 0.7), 0.2 + 0.6 * lax.logistic(x)
    ),
    "polygamma": lambda x: lax.polygamma(jnp.full_like(x, 2), 1 + positive(x)),
    "random": lambda x: x + 0.3 * jax.random.normal(jax.random.key(3), x.shape, x.dtype),
    "random_rbg": lambda x: x * jax.random.uniform(jax.random.key(5, impl="rbg"), x.shape, x.dtype),
    "bits": lambda x: x * (1 + lax.population_count(_steps(x)) % 3),
    "shifted": lambda x: x * ((_steps(x) << 2) ^ (_steps(x) >> 1)).astype(x.dtype) / 9,
    "neg": lambda x: -x,
    "abs": jnp.abs,
    "sign": jnp.sign,
    "floor": jnp.floor,
    "round": jnp.round,
    "stop_gradient": lax.stop_gradient,
    "copy": jnp.copy,
    "barrier": lax.optimization_barrier,
    "clamp": lambda x: lax.clamp(-0.53, x, 0.71),
    "relu": jax.nn.relu,
    "softmax": lambda x: jax.nn.softmax(x, axis=-1) if x.ndim and x.shape[-1] else x,
    "iota": lambda x: x + 0.1 * lax.broadcasted_iota(x.dtype, x.shape, x.ndim - 1) if x.ndim else x,
    "constant": lambda x: x * np.cos(np.arange(x.size)).reshape(x.shape),
    "constant_scalar": lambda x: x * np.float64(0.7) + 0.3,
    "acos": lambda x: jnp.arccos(0.7 * jnp.tanh(x)),
    "ceil": jnp.ceil,
    # JAX differentiates these two once at most.
    "zeta": lambda x: x * lax.zeta(jnp.full_like(x, 2.5), positive(lax.stop_gradient(x))) / 8,
    "igamma_grad_a": lambda x: x * lax.igamma_grad_a(positive(lax.stop_gradient(x)), jnp.full_like(x, 1.3)),
    "gamma": lambda x: jax.random.gamma(jax.random.key(7), 0.5 + positive(x), dtype=x.dtype),
    "random_split": lambda x: (
        x
        * jax.random.uniform(jax.random.fold_in(jax.random.split(jax.random.key(3))[1], 4), x.shape, x.dtype)
    ),
    "leading_zeros": lambda x: x * (1 + lax.clz(_steps(x)).astype(x.dtype) / 32),
    "signed_shift": lambda x: x * (-_steps(x).astype(jnp.int32) >> 1).astype(x.dtype) / 2,
    "within": lambda x: jnp.where(~(x >= 0.613) & (x <= 0.913), x, 0.4 * x),
    "named": lambda x: checkpoint_name(jnp.sin(x), "sine") * x,
    "phase": lambda x: jnp.real(jnp.exp(1j * x) * lax.complex(x, 0.5 * x)),
}

BINARY: dict[str, Callable] = {
    "rem": lambda x, y: lax.rem(x, 0.37 + positive(y)),
    "stack": lambda x, y: jnp.stack([x, y, x])[1] if x.ndim < 3 else y,
    "nextafter": lambda x, y: x + lax.nextafter(lax.stop_gradient(x), lax.stop_gradient(y)),
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * jnp.tanh(y),
    "div": lambda x, y: x / positive(y),
    "pow": lambda x, y: positive(x) ** jnp.tanh(y),
    "atan2": lambda x, y: jnp.arctan2(x, positive(y)),
    "max": jnp.maximum,
    "min": jnp.minimum,
    "where": lambda x, y: jnp.where(x > 0.137, x, y),
    "select": lambda x, y: lax.select_n(lax.floor(3 * lax.logistic(x)).astype(jnp.int32), x, y, x * y),
    "clamp2": lambda x, y: lax.clamp(x - 0.4, y, x + 0.6),
    "modulus": lambda x, y: jnp.abs(lax.complex(1.5 + jnp.tanh(x), y)),
    "turned": lambda x, y: jnp.imag(jnp.conj(lax.complex(x, y)) * jnp.exp(1j * x) / (1.3 + 0.4j)),
    "keyed": lambda x, y: lax.sort((x, y), dimension=0, num_keys=1)[1] if x.ndim else x,
    "barrier2": lambda x, y: lax.optimization_barrier((x, y))[1],
}


# Of one operand or two, with parameters. `draw` gives the parameters for an operand of a shape, or None
# where there are none that fit.

Draw = Callable[[Any, Shape], tuple | None]


def _axis(draw, shape):
    return (draw(st.integers(0, len(shape) - 1)),) if shape else None


def _full_axis(draw, shape):
    """An axis of at least one element."""
    axes = [k for k, n in enumerate(shape) if n]
    return (draw(st.sampled_from(axes)),) if axes else None


def _axes(draw, shape):
    return (tuple(sorted(draw(st.sets(st.integers(0, len(shape) - 1))))),) if shape else None


def _directed(draw, shape):
    return (*_axis(draw, shape), draw(st.booleans())) if shape else None


def _directed_full(draw, shape):
    axis = _full_axis(draw, shape)
    return (*axis, draw(st.booleans())) if axis else None


def _permutation(draw, shape):
    return (tuple(draw(st.permutations(range(len(shape))))),)


def _reshape(draw, shape):
    size = int(np.prod(shape))
    return (draw(st.sampled_from([(size,), (1, size), shape[::-1], (*shape[:2], int(np.prod(shape[2:])))])),)


def _grow(draw, shape):
    if len(shape) == 3 or 2 * np.prod(shape) > LARGEST:
        return None
    return draw(st.integers(0, len(shape))), draw(st.integers(0, 2))


def _pad(draw, shape):
    config = []
    for n in shape:
        low, high = draw(st.integers(-1 if n > 1 else 0, 1)), draw(st.integers(-1 if n > 1 else 0, 1))
        config.append((low, high, draw(st.integers(0, 1))))
    return (tuple(config),)


def _slice(draw, shape):
    start = tuple(draw(st.integers(0, n)) for n in shape)
    limit = tuple(draw(st.integers(s, n)) for s, n in zip(start, shape, strict=True))
    return start, limit, tuple(draw(st.integers(1, 2)) for _ in shape)


def _starts(draw, shape):
    """Places and sizes of a window; the places may lie outside."""
    return tuple(draw(st.integers(-1, n + 1)) for n in shape), tuple(draw(st.integers(0, n)) for n in shape)


def _indices(draw, shape):
    if not shape or not shape[0]:
        return None
    indices = tuple(draw(st.lists(st.integers(-shape[0], shape[0]), max_size=3)))
    return indices, draw(st.sampled_from(["fill", "clip"]))


def _places(draw, shape):
    if not shape or not shape[0]:
        return None
    update = draw(st.sampled_from(["add", "subtract", "set", "mul", "min", "max"]))
    return tuple(draw(st.permutations(range(shape[0])))[: draw(st.integers(1, shape[0]))]), update


def _halves(draw, shape):
    axis = _axis(draw, shape)
    return axis and (*axis, draw(st.integers(0, shape[axis[0]])))


def _window(draw, shape):
    """Of a size, with strides and padding, on every axis."""
    if not shape or 0 in shape:
        return None
    window = tuple(draw(st.integers(1, min(2, n))) for n in shape)
    strides = tuple(draw(st.integers(1, 2)) for _ in shape)
    padding = tuple((draw(st.integers(0, w - 1)), draw(st.integers(0, w - 1))) for w in window)
    return window, strides, padding


def _pooled(reducer, start):
    def pool(x, window, strides, padding):
        return lax.reduce_window(x, x.dtype.type(start), reducer, window, strides, padding)

    return pool


def _average(x, window, strides, padding):
    return _pooled(lax.add, 0.0)(x, window, strides, padding) / np.prod(window)


def _convolved(x, y, axis, dilation):
    """Along one axis, the others being batches; the kernel comes out of the other operand."""
    rows = jnp.moveaxis(x, axis, -1)
    flat = rows.reshape(-1, 1, rows.shape[-1])
    kernel = jnp.tanh(jnp.sum(y)) * np.array([0.5, -0.3, 0.2]).astype(x.dtype) + 0.1
    found = lax.conv_general_dilated(
        flat, kernel.reshape(1, 1, 3), (1,), [(dilation, dilation)], rhs_dilation=(dilation,)
    )
    return jnp.moveaxis(found.reshape(rows.shape), -1, axis)


def _convolution(draw, shape):
    axis = _full_axis(draw, shape)
    return (*axis, draw(st.integers(1, 2))) if axis and 0 not in shape else None


def _along(draw, shape):
    axis = _full_axis(draw, shape)
    return (*axis, draw(st.integers(1, shape[axis[0]]))) if axis else None


def _fourier(x, axis):
    return jnp.real(jnp.fft.ifft(jnp.fft.fft(x, axis=axis) * (0.7 + 0.2j), axis=axis))


def _spectrum(x, axis):
    return jnp.abs(jnp.fft.rfft(x, axis=axis)) ** 2 / x.shape[axis]


def _segments(x, y):
    """Rows summed by where the other operand's are."""
    where = jnp.floor(2 * lax.logistic(conform(y, x.shape[:1]))).astype(jnp.int32)
    return jax.ops.segment_sum(x, where, 3)


def _folded(x, axis):
    combine = lambda a, b: a + b + 0.1 * a * b  # noqa: E731
    return lax.reduce(jnp.tanh(x), np.asarray(0, x.dtype), combine, (axis,))


def _scatter(x, y, places, update):
    rows = conform(y, (len(places), *x.shape[1:]))
    return getattr(x.at[np.asarray(places)], update)(rows, unique_indices=True)


def _repeated(x, y, indices, mode):
    """Rows read at places that may repeat or lie outside, and added back at the same places."""
    where = np.asarray(indices, int)
    mode = "drop" if mode == "fill" else mode
    return x.at[where].add(conform(y, (len(indices), *x.shape[1:])), mode=mode)


def _update(x, y, starts, sizes):
    return lax.dynamic_update_slice(x, conform(y, sizes), [np.int32(i) for i in starts])


def _pad_value(x, y, config):
    """JAX 0.10.2 cannot run it backwards where the value alone is active: then both are."""
    value = conform(y, ())
    return lax.pad(x + 0 * value, value, config)


def _contract(x, y, axis):
    """Along one axis, with the leading one as a batch where there is another."""
    y = conform(y, x.shape)
    batch = tuple(k for k in (0,) if x.ndim == 3 and axis != k)
    return lax.dot_general(jnp.tanh(x), y, (((axis,), (axis,)), (batch, batch)))


def _flags(x, axes):
    """The sum, with numbers made of bools and bits that are reduced."""
    odd = lax.reduce_xor(_steps(x), axes).astype(x.dtype)
    return jnp.sum(x, axes) + 0.5 * jnp.any(x > 0.613, axes) - 0.5 * jnp.all(x < 0.137, axes) + odd / 4


def _window_fold(x, window, strides, padding):
    """Windows combined by a function that is no sum, product or order."""
    combine = lambda a, b: a + b + 0.1 * a * b  # noqa: E731
    return lax.reduce_window(
        lax.stop_gradient(jnp.tanh(x)), np.asarray(0, x.dtype), combine, window, strides, padding
    )


SHAPED: dict[str, tuple[Draw, Callable]] = MATRICES | {
    "reduce_sum": (_axes, lambda x, axes: 0.3 * jnp.sum(x, axes)),
    "reduce_prod": (_axes, lambda x, axes: jnp.prod(1 + 0.2 * jnp.sin(x), axes)),
    "any_all_odd": (_axes, _flags),
    "argmin": (_full_axis, lambda x, axis: 0.3 * jnp.argmin(x, axis) + jnp.sum(x, axis)),
    "approx_max_k": (_along, lambda x, axis, k: lax.approx_max_k(jnp.moveaxis(x, axis, -1), k)[0]),
    "window_fold": (_window, _window_fold),
    "reduce_max": (_full_axis, lambda x, axis: jnp.max(x, axis)),
    "reduce_min": (_full_axis, lambda x, axis: jnp.min(x, axis)),
    "mean": (_full_axis, lambda x, axis: jnp.mean(x, axis, keepdims=True)),
    "logsumexp": (_full_axis, lambda x, axis: jax.nn.logsumexp(x, axis)),
    "argmax": (_full_axis, lambda x, axis: 0.3 * jnp.argmax(x, axis) + jnp.sum(x, axis)),
    "cumsum": (_directed, lambda x, axis, reverse: lax.cumsum(x, axis, reverse)),
    "cumprod": (_directed, lambda x, axis, reverse: lax.cumprod(1 + 0.2 * jnp.sin(x), axis, reverse)),
    "cummax": (_directed_full, lambda x, axis, reverse: lax.cummax(x, axis, reverse)),
    "cummin": (_directed_full, lambda x, axis, reverse: lax.cummin(x, axis, reverse)),
    "cumlogsumexp": (_directed_full, lambda x, axis, reverse: lax.cumlogsumexp(x, axis, reverse)),
    "sort": (_axis, lambda x, axis: jnp.sort(x, axis)),
    "argsort": (_full_axis, lambda x, axis: jnp.take_along_axis(jnp.sin(x), jnp.argsort(x, axis), axis)),
    "transpose": (_permutation, lambda x, order: jnp.transpose(x, order)),
    "fft": (_full_axis, _fourier),
    "rfft": (_full_axis, _spectrum),
    "irfft": (_full_axis, lambda x, axis: jnp.fft.irfft(x + 0j, axis=axis, n=2 * x.shape[axis] - 1)),
    "top_k": (_along, lambda x, axis, k: lax.top_k(jnp.moveaxis(x, axis, -1), k)[0]),
    "max_pool": (_window, _pooled(lax.max, -np.inf)),
    "min_pool": (_window, _pooled(lax.min, np.inf)),
    "average_pool": (_window, _average),
    "fold": (_full_axis, _folded),
    "associative_scan": (_full_axis, lambda x, axis: lax.associative_scan(jnp.add, x, axis=axis)),
    "unstack": (_full_axis, lambda x, axis: tuple(jnp.unstack(x, axis=axis))[-1]),
    "tile": (_grow, lambda x, axis, n: jnp.tile(x, (*(1,) * (x.ndim - 1), n)) if x.ndim else x),
    "rev": (_axes, lambda x, axes: lax.rev(x, axes)),
    "reshape": (_reshape, lambda x, shape: x.reshape(shape)),
    "broadcast": (_grow, lambda x, axis, n: jnp.repeat(jnp.expand_dims(x, axis), n, axis)),
    "expand": (_grow, lambda x, axis, _: jnp.expand_dims(x, axis)),
    "pad": (_pad, lambda x, config: lax.pad(x, 0.5, config)),
    "slice": (_slice, lambda x, start, limit, strides: lax.slice(x, start, limit, strides)),
    "dynamic_slice": (_starts, lambda x, at, sizes: lax.dynamic_slice(x, [np.int32(i) for i in at], sizes)),
    "split": (_halves, lambda x, axis, n: tuple(lax.split(x, (n, x.shape[axis] - n), axis))),
    "gather": (_indices, lambda x, indices, mode: x.at[np.asarray(indices, int)].get(mode=mode)),
}

SHAPED_BINARY: dict[str, tuple[Draw, Callable]] = MATRICES_BINARY | {
    "convolution": (_convolution, _convolved),
    "segment_sum": (lambda draw, shape: () if shape else None, _segments),
    "take_along": (
        _full_axis,
        lambda x, y, axis: jnp.take_along_axis(x, jnp.argsort(conform(y, x.shape), axis)[..., ::-1], axis),
    ),
    "concatenate": (_axis, lambda x, y, axis: jnp.concatenate([x, conform(y, x.shape)], axis)),
    "scatter": (_places, _scatter),
    "scatter_repeated": (_indices, _repeated),
    "dynamic_update_slice": (_starts, _update),
    "dot_general": (_axis, _contract),
    "pad_value": (_pad, _pad_value),
}
