"""Loops whose trips read and write a few elements of an array, which need not be passed whole each time."""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from ..case import Case, Problem, against_grad, gradient

_RATIO = 10


def epidemic(days: int) -> Callable:
    """The sum of the squares of those infected; the states are written into an array as the loop goes."""

    def loss(rates, start):
        def day(k, paths):
            s, i = paths[0, k - 1], paths[1, k - 1]
            infected, recovered = rates[0] * s * i, rates[1] * i
            paths = paths.at[0, k].set(s - infected)
            return paths.at[1, k].set(i + infected - recovered)

        paths = jnp.zeros((2, days)).at[:, 0].set(start)
        return jnp.sum(jax.lax.fori_loop(1, days, day, paths)[1] ** 2)

    return loss


def _path(length: int, quick: bool) -> Problem:
    """An SIR model that writes its states into arrays as it goes."""
    return gradient(epidemic(20 if quick else length), (np.array([0.3, 0.1]), np.array([0.99, 0.01])))


def _sweep(size: int, quick: bool) -> Problem:
    """A Gauss-Seidel sweep of means of nine, an element a trip, as Polybench's seidel_2d."""
    n = 6 if quick else size

    def loss(a):
        def element(k, a):
            i, j = k // (n - 2) + 1, k % (n - 2) + 1
            around = [a[i + di, j + dj] for di in (-1, 0, 1) for dj in (-1, 0, 1)]
            return a.at[i, j].set(sum(around) / 9)

        return jnp.sum(jax.lax.fori_loop(0, (n - 2) ** 2, element, a))

    return gradient(loss, (np.random.default_rng(0).uniform(size=(n, n)),))


def _triangular(size: int, quick: bool) -> Problem:
    """A triangular product in place, a row of updates a trip, as Polybench's trmm."""
    n = 5 if quick else size

    def loss(b, a):
        def row(i, b):
            below = jnp.where(jnp.arange(n) > i, a[:, i], 0.0)
            return b.at[i].add(below @ b)

        return jnp.sum(jax.lax.fori_loop(0, n, row, b))

    rng = np.random.default_rng(0)
    return gradient(loss, tuple(rng.uniform(size=(2, n, n))))


def _case(name, title, make, size) -> Case:
    return Case(f"{name}-{size}", title, against_grad(_RATIO), functools.partial(make, size))


CASES = (
    *(_case("path", f"SIR model that writes its path, {n} days", _path, n) for n in (500, 2000, 8000)),
    *(_case("sweep", f"Gauss-Seidel sweep, {n}×{n}", _sweep, n) for n in (40, 80, 160)),
    _case("triangular", "triangular product in place, 60×60", _triangular, 60),
)
