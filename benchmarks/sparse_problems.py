"""Functions with sparse derivatives, for pybridge and for asdex: this module imports JAX alone."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

_SIDE = 70
_ROUNDS = 300


@dataclass(frozen=True)
class Problem:
    """size: how many unknowns. hessian: whether it is that of `f`, or its Jacobian."""

    name: str
    f: Callable[[Any], Any]
    size: int
    hessian: bool = False

    @property
    def x(self) -> Any:
        return jnp.asarray(np.random.default_rng(0).uniform(0.1, 1.0, self.size))


def gray_scott(u: Any) -> Any:
    """Reaction and diffusion of two substances on a square with periodic edges, n = 9,800."""
    a, b = u.reshape(2, _SIDE, _SIDE)
    rate = a * b**2
    return jnp.stack(
        [16 * _laplacian(a) - rate + 0.035 * (1 - a), 8 * _laplacian(b) + rate - 0.1 * b]
    ).reshape(-1)


def _laplacian(w: Any) -> Any:
    return sum(jnp.roll(w, shift, axis) for axis in (0, 1) for shift in (1, -1)) - 4 * w


def nonlinear_diffusion(u: Any) -> Any:
    """The same with diffusion that grows with the square of what diffuses: no entry is constant."""
    a, b = u.reshape(2, _SIDE, _SIDE)
    rate = a * b**2
    return jnp.stack([16 * _spread(a) - rate + 0.035 * (1 - a), 8 * _spread(b) + rate - 0.1 * b]).reshape(-1)


def _spread(w: Any) -> Any:
    def along(axis: int) -> Any:
        after = jnp.roll(w, -1, axis)
        flow = (1 + 0.5 * (w**2 + after**2)) * (after - w)
        return flow - jnp.roll(flow, 1, axis)

    return along(0) + along(1)


def gray_scott_line(u: Any) -> Any:
    """Reaction and diffusion of two substances on a line with closed ends."""
    a, b = u.reshape(2, -1)
    rate = a * b**2
    return jnp.concatenate([16 * _second(a) - rate + 0.035 * (1 - a), 8 * _second(b) + rate - 0.1 * b])


def _second(w: Any) -> Any:
    return jnp.concatenate([2 * (w[1:2] - w[:1]), w[2:] - 2 * w[1:-1] + w[:-2], 2 * (w[-2:-1] - w[-1:])])


def rosenbrock(x: Any) -> Any:
    return jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def brown(x: Any) -> Any:
    a, b = x[:-1] ** 2, x[1:] ** 2
    return jnp.sum(a ** (b + 1) + b ** (a + 1))


PROBLEMS = (
    Problem("reaction-diffusion, 2-D", gray_scott, 2 * _SIDE**2),
    Problem("reaction-diffusion, 1-D", gray_scott_line, 10_000),
    Problem("nonlinear diffusion, 2-D", nonlinear_diffusion, 2 * _SIDE**2),
    Problem("Rosenbrock's Hessian", rosenbrock, 100_000, hessian=True),
    Problem("Brown's Hessian", brown, 100_000, hessian=True),
)


def measured(function: Callable[[Any], Any], x: Any) -> dict[str, float]:
    """Seconds of the first call of a jitted function, and the least of later ones."""
    start = time.perf_counter()
    jax.block_until_ready(function(x))
    first, times = time.perf_counter() - start, []
    for _ in range(_ROUNDS):
        start = time.perf_counter()
        jax.block_until_ready(function(x))
        times.append(time.perf_counter() - start)
    return {"first": first, "time": min(times), "median": float(np.median(times))}
