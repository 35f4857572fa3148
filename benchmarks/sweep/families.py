"""The families of primitives: a function, the dtypes that JAX accepts, and arguments of three sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from pybridge.ir.numerals import DTYPES

from ..choices import smoothed, spectrum_2d

SIZES = ("small", "middle", "large")
VALUE, GRADIENT = "value", "gradient"

_WIDE = ("f32", "f64")
_REAL = (*_WIDE, "bf16", "f16")
_WIDE_COMPLEX = (*_WIDE, "c64")
_ALL = (*_REAL, "c64")

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Indices:
    """An argument of random integers below `below`."""

    shape: Shape
    below: int


@dataclass(frozen=True)
class Definite:
    """An argument of symmetric positive definite matrices."""

    shape: Shape


Arguments = tuple[Shape | Indices | Definite, ...]
Sizes = tuple[Arguments, Arguments, Arguments]


@dataclass(frozen=True)
class Family:
    """One program. sizes: its arguments, small, middle and large; those of floats are differentiated by."""

    name: str
    f: Callable[..., Any]
    sizes: Sizes
    dtypes: tuple[str, ...] = _ALL
    modes: tuple[str, ...] = (VALUE, GRADIENT)


@dataclass(frozen=True)
class Problem:
    """A family in one dtype, at one size, as a value or as a gradient."""

    family: Family
    dtype: str
    size: str
    mode: str

    @property
    def name(self) -> str:
        return f"{self.family.name}/{self.dtype}/{self.size}/{self.mode}"

    @property
    def x64(self) -> bool:
        return self.dtype == "f64"

    def arguments(self) -> tuple[jax.Array, ...]:
        """The same at each call; to be asked for where JAX's x64 is the problem's."""
        random = np.random.default_rng(0)
        kinds = self.family.sizes[SIZES.index(self.size)]
        return tuple(jnp.asarray(_argument(random, kind, self.dtype)) for kind in kinds)

    def function(self, bridge: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Callable[..., Any]:
        """What is timed: the bridged function, or the gradient of its sum, by all arguments of floats."""
        if self.mode == VALUE:
            return bridge(self.family.f)
        kinds = self.family.sizes[SIZES.index(self.size)]
        places = tuple(k for k, kind in enumerate(kinds) if not isinstance(kind, Indices))
        return jax.grad(bridge(_total(self.family.f)), places)


def _total(f: Callable[..., Any]) -> Callable[..., jax.Array]:
    def total(*args: Any) -> jax.Array:
        return sum(jnp.sum(jnp.real(y)) for y in jax.tree.leaves(f(*args)))

    return total


def _argument(random: np.random.Generator, kind: Shape | Indices | Definite, dtype: str) -> np.ndarray:
    if isinstance(kind, Indices):
        return random.integers(0, kind.below, kind.shape, dtype=np.int32)
    shape = kind.shape if isinstance(kind, Definite) else kind
    x = random.uniform(0.1, 1.0, shape)
    if isinstance(kind, Definite):
        x = x + x.swapaxes(-1, -2) + 2 * shape[-1] * np.eye(shape[-1])
    elif dtype == "c64":
        x = x + 1j * random.uniform(0.1, 1.0, shape)
    return x.astype(DTYPES[dtype])


def _vectors(*lengths: int, count: int = 1) -> Sizes:
    small, middle, large = (((n,),) * count for n in lengths)
    return small, middle, large


def _matrices(*sides: int, kind: Callable[[Shape], Any] = tuple, count: int = 1) -> Sizes:
    small, middle, large = ((kind((n, n)),) * count for n in sides)
    return small, middle, large


_LONG = (100, 10_000, 1_000_000)
_SLOW = (100, 5_000, 100_000)
"""Of functions that take more than some tens of nanoseconds."""
_SIDES = (10, 100, 1000)
_FACTORED = (6, 40, 200)


def _elementwise() -> Iterator[Family]:
    for name, f, count, dtypes in (
        ("arithmetic", lambda x, y: x * y + x, 2, _ALL),
        ("division", lambda x, y: x / y, 2, _ALL),
        ("select", lambda x, y: jnp.where(x > y, x - y, 2 * y), 2, _REAL),
        ("sqrt", jnp.sqrt, 1, _ALL),
        ("exp", jnp.exp, 1, _ALL),
        ("log", jnp.log, 1, _ALL),
        ("log1p", jnp.log1p, 1, _ALL),
        ("sin", jnp.sin, 1, _ALL),
        ("cos", jnp.cos, 1, _ALL),
        ("tanh", jnp.tanh, 1, _ALL),
        ("logistic", jax.nn.sigmoid, 1, _ALL),
        ("softplus", jax.nn.softplus, 1, _REAL),
        ("atan2", jnp.arctan2, 2, _REAL),
        ("asin", lambda x: jnp.arcsin(0.9 * x), 1, _REAL),
        ("pow", lambda x, y: x**y, 2, _ALL),
        ("cube", lambda x: x**3, 1, _ALL),
        ("erf", lax.erf, 1, _REAL),
        ("erf_inv", lambda x: lax.erf_inv(0.9 * x), 1, _REAL),
    ):
        yield Family(name, f, _vectors(*_LONG, count=count), dtypes)
    yield Family("to_float32", lambda x: x.astype(jnp.float32), _vectors(*_LONG), ("f64", "bf16", "f16"))
    for name, f, count in (
        ("lgamma", lax.lgamma, 1),
        ("digamma", lax.digamma, 1),
        ("trigamma", lambda x: jax.scipy.special.polygamma(1, x), 1),
        ("bessel_i0e", lax.bessel_i0e, 1),
        ("bessel_i1e", lax.bessel_i1e, 1),
        ("igamma", lax.igamma, 2),
        ("igammac", lax.igammac, 2),
        ("betainc", lax.betainc, 3),
    ):
        modes = (VALUE,) if name in ("trigamma", "betainc") else (VALUE, GRADIENT)
        yield Family(name, f, _vectors(*_SLOW, count=count), _REAL, modes)


def _reductions() -> Iterator[Family]:
    for name, f, dtypes in (
        ("sum", jnp.sum, _ALL),
        ("sum_columns", lambda x: jnp.sum(x, 0), _ALL),
        ("max", lambda x: jnp.max(x, 1), _REAL),
        ("variance", lambda x: jnp.var(x, 1), _REAL),
        ("logsumexp", lambda x: jax.nn.logsumexp(x, 1), _REAL),
        ("softmax", jax.nn.softmax, _REAL),
        ("log_softmax", jax.nn.log_softmax, _REAL),
        ("cumsum", lambda x: jnp.cumsum(x, 1), _ALL),
        ("cummax", lambda x: lax.cummax(x, 1), _REAL),
    ):
        yield Family(name, f, _matrices(*_SIDES), dtypes)
    yield Family("argmax", lambda x: jnp.argmax(x, 1), _matrices(*_SIDES), _REAL, (VALUE,))
    yield Family("long_cumsum", jnp.cumsum, _vectors(*_LONG), _ALL)
    yield Family("sort", jnp.sort, _vectors(*_LONG), _REAL)
    yield Family("sort_rows", lambda x: jnp.sort(x, 1), _matrices(*_SIDES), _REAL)
    yield Family("top_k", lambda x: lax.top_k(x, 5)[0], _vectors(*_LONG), _REAL)


def _indexing() -> Iterator[Family]:
    rows: Sizes = (
        ((10, 10), Indices((10,), 10)),
        ((100, 100), Indices((100,), 100)),
        ((10_000, 100), Indices((10_000,), 10_000)),
    )
    numbers: Sizes = (
        ((100,), Indices((100,), 100)),
        ((10_000,), Indices((10_000,), 10_000)),
        ((1_000_000,), Indices((1_000_000,), 1_000_000)),
    )
    yield Family("gather_rows", lambda x, k: x[k], rows)
    yield Family("gather_numbers", lambda x, k: x[k], numbers)
    yield Family("scatter_rows", lambda x, k: jnp.zeros_like(x).at[k].add(x), rows)
    yield Family("scatter_numbers", lambda x, k: jnp.zeros_like(x).at[k].add(x), numbers)
    yield Family("concatenate", lambda x, y: jnp.concatenate([x, y], 1), _matrices(*_SIDES, count=2))
    yield Family("pad", lambda x: jnp.pad(x, 2), _matrices(*_SIDES))
    yield Family("slice", lambda x: x[1:, ::2], _matrices(*_SIDES))
    yield Family("update", lambda x: x.at[1:4, 1:4].set(0), _matrices(*_SIDES))
    yield Family("transpose", lambda x: x.T, _matrices(*_SIDES))
    yield Family("reverse", lambda x: x[:, ::-1], _matrices(*_SIDES))


def _products() -> Iterator[Family]:
    yield Family("dot_square", jnp.matmul, _matrices(10, 100, 400, count=2))
    thin: Sizes = (((2, 10), (10, 10)), ((4, 100), (100, 100)), ((8, 1000), (1000, 1000)))
    yield Family("dot_thin", jnp.matmul, thin)
    outer: Sizes = (((10, 4), (4, 10)), ((100, 8), (8, 100)), ((1000, 10), (10, 1000)))
    yield Family("dot_outer", jnp.matmul, outer)
    vector: Sizes = (((10, 10), (10,)), ((100, 100), (100,)), ((1000, 1000), (1000,)))
    yield Family("dot_vector", jnp.matmul, vector)
    stack: Sizes = (((6, 4, 4),) * 2, ((600, 4, 4),) * 2, ((20_000, 4, 4),) * 2)
    yield Family("dot_stack", jnp.matmul, stack)
    stack = (((2, 16, 16),) * 2, ((16, 32, 32),) * 2, ((64, 64, 64),) * 2)
    yield Family("dot_stack_of_larger", jnp.matmul, stack)


def _convolution(*layout: str, stride: int = 1, groups: int = 1) -> Callable[..., jax.Array]:
    def convolved(x: jax.Array, kernel: jax.Array) -> jax.Array:
        strides = (stride,) * (x.ndim - 2)
        return lax.conv_general_dilated(
            x, kernel, strides, "SAME", dimension_numbers=layout, feature_group_count=groups
        )

    return convolved


def _by_channel(x: jax.Array, kernel: jax.Array) -> jax.Array:
    return _convolution("NHWC", "HWIO", "NHWC", groups=x.shape[-1])(x, kernel)


def _windows() -> Iterator[Family]:
    images: Sizes = (
        ((1, 8, 8, 2), (3, 3, 2, 4)),
        ((2, 16, 16, 8), (3, 3, 8, 8)),
        ((8, 32, 32, 16), (3, 3, 16, 16)),
    )
    yield Family("conv_NHWC", _convolution("NHWC", "HWIO", "NHWC"), images)
    yield Family("conv_NHWC_strided", _convolution("NHWC", "HWIO", "NHWC", stride=2), images)
    first: Sizes = (
        ((1, 2, 8, 8), (4, 2, 3, 3)),
        ((2, 8, 16, 16), (8, 8, 3, 3)),
        ((8, 16, 32, 32), (16, 16, 3, 3)),
    )
    yield Family("conv_NCHW", _convolution("NCHW", "OIHW", "NCHW"), first)
    lines: Sizes = (
        ((1, 32, 2), (5, 2, 4)),
        ((2, 256, 8), (5, 8, 8)),
        ((8, 2048, 16), (5, 16, 16)),
    )
    yield Family("conv_1d", _convolution("NWC", "WIO", "NWC"), lines)
    channels: Sizes = (
        ((1, 8, 8, 2), (3, 3, 1, 2)),
        ((2, 16, 16, 16), (3, 3, 1, 16)),
        ((8, 32, 32, 32), (3, 3, 1, 32)),
    )
    yield Family("conv_by_channel", _by_channel, channels)
    pooled: Sizes = (((1, 8, 8, 2),), ((2, 16, 16, 16),), ((8, 64, 64, 16),))
    window = (1, 2, 2, 1)
    largest = lambda x: lax.reduce_window(x, -np.inf, lax.max, window, window, "VALID")  # noqa: E731
    total = lambda x: lax.reduce_window(x, 0.0, lax.add, window, window, "VALID")  # noqa: E731
    yield Family("max_pool", largest, pooled, _REAL)
    yield Family("mean_pool", total, pooled, _REAL)


def _linear_algebra() -> Iterator[Family]:
    lines: Sizes = (((128,),), ((16, 512),), ((64, 4096),))
    yield Family("fft", jnp.fft.fft, lines, ("c64",))
    yield Family("rfft", jnp.fft.rfft, lines, _WIDE)
    yield Family("fft_2d", spectrum_2d, _matrices(16, 64, 512), _WIDE_COMPLEX)
    definite = _matrices(*_FACTORED, kind=Definite)
    few = _matrices(6, 24, 100, kind=Definite)
    general = _matrices(*_FACTORED)
    yield Family("cholesky", jnp.linalg.cholesky, definite, _WIDE_COMPLEX)
    yield Family("qr", jnp.linalg.qr, general, _WIDE_COMPLEX)
    yield Family("eigh", jnp.linalg.eigh, few, _WIDE_COMPLEX)
    yield Family("svd", lambda x: jnp.linalg.svd(x, compute_uv=False), _matrices(6, 24, 100), _WIDE_COMPLEX)
    yield Family("svd_vectors", jnp.linalg.svd, _matrices(6, 24, 100), _WIDE_COMPLEX, (VALUE,))
    right: Sizes = tuple((Definite((n, n)), (n, n)) for n in _FACTORED)  # type: ignore[assignment]
    yield Family("solve", jnp.linalg.solve, right, _WIDE_COMPLEX)
    yield Family("triangular_solve", _solved, right, _WIDE_COMPLEX)
    vector: Sizes = tuple((Definite((n, n)), (n, 1)) for n in _FACTORED)  # type: ignore[assignment]
    yield Family("triangular_solve_vector", _solved, vector, _WIDE_COMPLEX)
    stack: Sizes = tuple((Definite((n, 4, 4)),) for n in (4, 200, 5000))  # type: ignore[assignment]
    yield Family("cholesky_stack", jnp.linalg.cholesky, stack, _WIDE_COMPLEX)


def _solved(a: jax.Array, b: jax.Array) -> jax.Array:
    return lax.linalg.triangular_solve(a, b, left_side=True, lower=True)


def _recurrent(x: jax.Array, w: jax.Array) -> jax.Array:
    return lax.scan(lambda h, row: (jnp.tanh(h @ w + row), None), jnp.zeros_like(x[0]), x)[0]


def _loops() -> Iterator[Family]:
    yield Family("scan", smoothed, (((10, 8),), ((1000, 8),), ((100_000, 8),)))
    recurrent: Sizes = (((5, 4), (4, 4)), ((50, 16), (16, 16)), ((500, 64), (64, 64)))
    yield Family("scan_of_products", _recurrent, recurrent, _REAL)


def _families() -> Iterator[Family]:
    for group in (_elementwise, _reductions, _indexing, _products, _windows, _linear_algebra, _loops):
        yield from group()


FAMILIES = {family.name: family for family in _families()}


def problems() -> Iterator[Problem]:
    """All of them, dtype by dtype, so that a run that ends early has the usual dtypes."""
    for dtype in ("f32", "f64", "bf16", "f16", "c64"):
        for family in FAMILIES.values():
            if dtype in family.dtypes:
                for size in SIZES:
                    yield from (Problem(family, dtype, size, mode) for mode in family.modes)
