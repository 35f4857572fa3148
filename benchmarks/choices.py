"""What `execute="auto"` chooses, compared with both of its options.

The programs are such as the cost model (pybridge/ir/cost_model.py) has to tell apart: one primitive, or
a few, at sizes where a kernel of Julia's and XLA's operations differ, and some where they do not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import pybridge as pb
from pybridge.ir.numerals import DTYPES

from .case import Case, Problem, Requirement

NATIVE, XLA = 'execute="julia"', 'execute="xla"'
LEAST = 0.9
_REQUIREMENTS = (Requirement(NATIVE, LEAST), Requirement(XLA, LEAST))

_TOLERANCES = {"f32": 1e-3, "f64": 1e-9, "f16": 2e-2, "bf16": 1e-1}

Shapes = tuple[tuple[int, ...], ...]


def _problem(f: Callable, shapes: Shapes, dtype: str) -> Problem:
    random = np.random.default_rng(0)
    args = tuple(random.uniform(0.1, 1.0, shape).astype(DTYPES[dtype]) for shape in shapes)
    rivals = {NATIVE: pb.bridge(f, execute="julia"), XLA: pb.bridge(f, execute="xla")}
    return Problem(pb.bridge(f), f, rivals, args)


def _case(name: str, title: str, f: Callable, shapes: Shapes, dtype: str) -> Case:
    small = tuple(tuple(min(n, 8) for n in shape) for shape in shapes)
    return Case(
        f"{name}-{dtype}",
        f"{title} {dtype}",
        _REQUIREMENTS,
        lambda quick: _problem(f, small if quick else shapes, dtype),
        tolerance=_TOLERANCES[dtype],
        x64=dtype == "f64",
    )


def _one_step(x, y):
    return 0.5 * x * y[:, None] - x


def _softmax_loss(x, w):
    return -jax.nn.log_softmax(x @ w)[:, 0].mean()


def _spectrum(x):
    return jnp.abs(jnp.fft.fft(x))


def spectrum_2d(x):
    return jnp.abs(jnp.fft.fft2(x))


def _eigenvalues(x):
    return jnp.linalg.eigh(x @ x.T)[0]


def _triangle(x):
    return jnp.abs(jnp.linalg.qr(x)[1])


def _log_determinant(x):
    return jnp.log(jnp.diag(jnp.linalg.cholesky(x @ x.T + jnp.eye(len(x), dtype=x.dtype)))).sum()


def _pooled(x):
    return lax.reduce_window(x, -np.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def _filtered(x, w):
    layout = ("NHWC", "HWIO", "NHWC")
    return jax.nn.relu(lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=layout))


def _features_first(x, w):
    return jnp.sum(lax.conv(x, w, (1, 1), "SAME") ** 2)


def smoothed(x):
    """An exponential average, by a loop."""
    return lax.scan(lambda m, row: (0.9 * m + 0.1 * row, m.sum()), jnp.zeros_like(x[0]), x)[1]


_PROGRAMS: tuple[tuple[str, str, Callable, Shapes], ...] = (
    ("short-step", "a step of gradient descent, 10×10", _one_step, ((10, 10), (10,))),
    ("step", "a step of gradient descent, 90×90", _one_step, ((90, 90), (90,))),
    ("sine", "sines of 100 000", jnp.sin, ((100_000,),)),
    ("softmax", "softmax of 100×1000", jax.nn.softmax, ((100, 1000),)),
    ("sort", "sort of 10 000", jnp.sort, ((10_000,),)),
    ("running-sum", "running sum of 100 000", jnp.cumsum, ((100_000,),)),
    ("small-product", "product 64×64×64", jnp.matmul, ((64, 64), (64, 64))),
    ("product", "product 512×512×512", jnp.matmul, ((512, 512), (512, 512))),
    ("thin-product", "product 8×1000×1000", jnp.matmul, ((8, 1000), (1000, 1000))),
    ("outer-product", "product 1000×10×1000", jnp.matmul, ((1000, 10), (10, 1000))),
    ("transposed-product", "product 128×784×512, transposed", lambda a, b: a @ b.T, ((128, 784), (512, 784))),
    ("many-products", "1000 products 4×4×4", jnp.matmul, ((1000, 4, 4), (1000, 4, 4))),
    ("classifier", "linear classifier's gradient", jax.grad(_softmax_loss, 1), ((128, 784), (784, 10))),
    ("convolution", "convolution 8×32×32×16 by 3×3", _filtered, ((8, 32, 32, 16), (3, 3, 16, 16))),
    (
        "features-first",
        "convolution's gradient, 4×8×32×32 by 3×3, NCHW",
        jax.grad(_features_first, (0, 1)),
        ((4, 8, 32, 32), (8, 8, 3, 3)),
    ),
    ("pooling", "pooling of 8×32×32×16", _pooled, ((8, 32, 32, 16),)),
    ("fourier", "64 Fourier transforms of 1000", _spectrum, ((64, 1000),)),
    ("short-fourier", "Fourier transform of 256", _spectrum, ((256,),)),
    ("fourier-2d", "Fourier transform of 256×256", spectrum_2d, ((256, 256),)),
    ("eigenvalues", "eigenvalues of 100×100", _eigenvalues, ((100, 100),)),
    ("qr", "QR decomposition of 100×100", _triangle, ((100, 100),)),
    ("cholesky", "Cholesky decomposition of 100×100", _log_determinant, ((100, 100),)),
    (
        "trigamma",
        "derivatives of digamma of 10 000",
        lambda x: jax.scipy.special.polygamma(1, x),
        ((10_000,),),
    ),
    ("gamma", "incomplete gamma functions of 10 000", lax.igamma, ((10_000,), (10_000,))),
    ("bessel", "Bessel functions of 10 000", lax.bessel_i0e, ((10_000,),)),
    ("loop", "exponential average, 1000 steps of 8", smoothed, ((1000, 8),)),
)


_BOTH = (
    "product",
    "thin-product",
    "transposed-product",
    "softmax",
    "convolution",
    "fourier",
    "eigenvalues",
    "qr",
    "gamma",
)
"""Where float64 differs from float32 in more than the time of moving it."""
_HALF = ("step", "softmax", "small-product")
"""Of what numbers of two bytes take: element by element, functions and sums, products."""


def _cases() -> Iterator[Case]:
    for name, title, f, shapes in _PROGRAMS:
        wide = ("f32", "f64") if name in _BOTH else ("f32",)
        for dtype in (*wide, "f16", "bf16") if name in _HALF else wide:
            yield _case(name, title, f, shapes, dtype)


CASES = tuple(_cases())
