"""The gradients of many loops at once, as those have it who fit simulators or run chains of a sampler."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import jax
import numpy as np

from ..case import Case, Problem, Requirement, native
from .indexed import epidemic
from .scans import lorenz

_VMAP = "jax.vmap"
_RATIOS = (Requirement(_VMAP, 3, threads=1), Requirement(_VMAP, 5, threads=2))
_ITEMS = (100, 10_000)


def _gradients(f: Callable, args: tuple) -> Problem:
    """The gradients of `f` by all that an item has; each of `args` has an item in each row."""
    argnums = tuple(range(len(args)))
    theirs = jax.vmap(jax.grad(f, argnums))
    return Problem(jax.vmap(jax.grad(native(f), argnums)), theirs, {_VMAP: theirs}, args)


def _lorenz(items: int, quick: bool) -> Problem:
    """Lorenz's equations over two units of time, by Euler's method, from many places."""
    items, steps = (3, 5) if quick else (items, 200)
    random = np.random.default_rng(0)
    parameters = np.array([10.0, 28.0, 8 / 3]) * random.uniform(0.9, 1.1, (items, 3))
    return _gradients(lorenz(steps, 1e-2), (parameters, random.uniform(0.5, 1.5, (items, 3))))


def _epidemic(items: int, quick: bool) -> Problem:
    """An SIR model that writes its states into an array as it goes, with many rates of infection."""
    items, days = (3, 6) if quick else (items, 60)

    random = np.random.default_rng(0)
    rates = np.array([0.3, 0.1]) * random.uniform(0.8, 1.2, (items, 2))
    infected = random.uniform(0.001, 0.05, items)
    return _gradients(epidemic(days), (rates, np.stack([1 - infected, infected], axis=1)))


def _case(name: str, title: str, make: Callable[[int, bool], Problem], items: int) -> Case:
    return Case(f"{name}-{items}", title, _RATIOS, partial(make, items))


CASES = (
    *(_case("many-lorenz", f"{n} gradients of Lorenz, 200 steps", _lorenz, n) for n in _ITEMS),
    *(
        _case("many-epidemics", f"{n} gradients of an SIR model that writes its path", _epidemic, n)
        for n in _ITEMS
    ),
)
