"""The bounds of rounding errors against the errors themselves, which mpmath knows."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from covering import FULL, covering
from jax import lax, nn

import pybridge as pb

DIGITS = 60


@dataclass(frozen=True)
class Small:
    """A function of a vector in JAX, and in mpmath of a list of numbers."""

    name: str
    f: Callable[[Any], Any]
    exact: Callable[[list], Any]


def _loop(x):
    return lax.scan(lambda c, y: (c * 0.9 + jnp.sin(c * y), None), x[0], x)[0]


def _exact_loop(x):
    c = x[0]
    for y in x:
        c = c * _own(0.9) + mpmath.sin(c * y)
    return c


def _newton(x):
    step = lambda s: ((s[0] + x[1] / s[0]) / 2, s[1] + 1)  # noqa: E731
    return lax.while_loop(lambda s: s[1] < 4, step, (x[0], 0))[0]


def _exact_newton(x):
    c = x[0]
    for _ in range(4):
        c = (c + x[1] / c) / 2
    return c


def _own(number: float) -> Any:
    """The number of the function's precision that the literal is."""
    return mpmath.mpf(float(_PRECISION[-1](number)))


_PRECISION: list[type] = [np.float64]

SMALL = [
    Small("polynomial", lambda x: x[0] ** 3 - 2 * x[1] * x[2] + 5, lambda x: x[0] ** 3 - 2 * x[1] * x[2] + 5),
    Small("sum", jnp.sum, mpmath.fsum),
    Small("dot", lambda x: x @ x[::-1], lambda x: mpmath.fdot(x, x[::-1])),
    Small("exp and log", lambda x: jnp.log(jnp.exp(x[0]) + jnp.exp(x[1])),
          lambda x: mpmath.log(mpmath.exp(x[0]) + mpmath.exp(x[1]))),
    Small("trigonometry", lambda x: jnp.sin(x[0]) * jnp.cos(x[1]) / jnp.tanh(x[2]),
          lambda x: mpmath.sin(x[0]) * mpmath.cos(x[1]) / mpmath.tanh(x[2])),
    Small("norm", lambda x: jnp.sqrt(jnp.sum(x * x)), lambda x: mpmath.sqrt(mpmath.fdot(x, x))),
    Small("cancelling sum", lambda x: (1000 + x[0]) - 1000, lambda x: x[0]),
    Small("cancelling product", lambda x: (x[0] + x[1]) ** 2 - x[0] ** 2 - x[1] ** 2,
          lambda x: 2 * x[0] * x[1]),
    Small("1 - cos", lambda x: (1 - jnp.cos(x[0] / 64)) * 4096, lambda x: (1 - mpmath.cos(x[0] / 64)) * 4096),
    Small("exp - 1", lambda x: jnp.exp(x[0] / 1024) - 1, lambda x: mpmath.expm1(x[0] / 1024)),
    Small("variance", lambda x: jnp.mean((x + 16) ** 2) - jnp.mean(x + 16) ** 2,
          lambda x: mpmath.fsum(y * y for y in x) / 8 - (mpmath.fsum(x) / 8) ** 2),
    Small("quotients", lambda x: x[0] / x[1] / x[2] / x[3], lambda x: x[0] / x[1] / x[2] / x[3]),
    Small("logistic", lambda x: nn.sigmoid(x[0] - x[1]), lambda x: 1 / (1 + mpmath.exp(x[1] - x[0]))),
    Small("powers", lambda x: x[0] ** x[1] - x[2] ** -3, lambda x: x[0] ** x[1] - x[2] ** -3),
    Small("determinant", lambda x: jnp.linalg.det(x[:4].reshape(2, 2)), lambda x: x[0] * x[3] - x[1] * x[2]),
    Small("solve", lambda x: jnp.linalg.solve(x[:4].reshape(2, 2) + 2 * jnp.eye(2), x[4:6])[0],
          lambda x: mpmath.lu_solve(mpmath.matrix([[x[0] + 2, x[1]], [x[2], x[3] + 2]]), x[4:6])[0]),
    Small("scan", _loop, _exact_loop),
    Small("while", _newton, _exact_newton),
    Small("cumulative", lambda x: jnp.cumsum(x * x)[-1] - jnp.cumsum(x)[3],
          lambda x: mpmath.fdot(x, x) - mpmath.fsum(x[:4])),
    Small("logsumexp", lambda x: nn.logsumexp(x), lambda x: mpmath.log(mpmath.fsum(map(mpmath.exp, x)))),
]  # fmt: skip


def _ratios(case: Small, dtype: type) -> list[float]:
    """The bound over the error, for some points; infinite where there is no error."""
    found = []
    for seed in range(2 if FULL else 1):
        x = np.random.default_rng(seed).uniform(0.3, 2, 8).astype(dtype)
        rounding = pb.blame(case.f, x).rounding
        with mpmath.workdps(DIGITS):
            _PRECISION.append(dtype)
            exact = case.exact([mpmath.mpf(float(y)) for y in x])
            _PRECISION.pop()
            error = float(abs(mpmath.mpf(rounding.value) - exact))
        assert error <= rounding.bound, (case.name, seed, error, rounding.bound)
        found.append(rounding.bound / error if error else np.inf)
    return found


DTYPES = {"f32": np.float32, "f64": np.float64}
COVERED = covering(SMALL, DTYPES.values(), least=1)


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
def test_bounds_hold_and_are_near_the_errors(dtype, x64):
    ratios = [ratio for case, at in COVERED if at is dtype for ratio in _ratios(case, dtype)]
    assert statistics.median(ratios) < 100, sorted(ratios)
