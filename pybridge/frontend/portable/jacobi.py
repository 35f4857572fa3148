"""Jacobi's rotations, in rounds of pairs that have no index in common.

Positions are paired i with i + half; after each round all positions but the first move by one, as in a
round-robin tournament, so that in 2 half - 1 rounds, a sweep, each pair met once and all are back in place.

Source: Brent and Luk, The solution of singular-value and symmetric eigenvalue problems on multiprocessor
arrays, SIAM J. Sci. Stat. Comput. 6 (1985).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from jax import lax
from jax import numpy as jnp

MOST_SWEEPS = 40
"""Some ten suffice, since convergence is quadratic in the end; NaN never converge."""


def rotation(p: Any, q: Any, cross: Any, threshold: Any) -> tuple[Any, Any]:
    """c, real, and s of J = [[c, s], [-conj(s), c]]: Jᴴ [[p, cross], [conj(cross), q]] J is diagonal.

    The identity where |cross| is at most the threshold.
    """
    size = jnp.abs(cross)
    rotates = size > threshold
    safe = jnp.where(rotates, size, 1)
    tau = (q - p) / (2 * safe)
    t = jnp.where(tau >= 0, 1, -1) / (jnp.abs(tau) + jnp.hypot(1, tau))
    c = 1 / jnp.sqrt(1 + t * t)
    s = (t * c) * (cross / safe)
    return jnp.where(rotates, c, 1), jnp.where(rotates, s, 0)


def columns_rotated(x: Any, c: Any, s: Any) -> Any:
    """x J, of all pairs of columns at once."""
    half = c.shape[0]
    p, q = x[:, :half], x[:, half:]
    return jnp.concatenate([c * p - jnp.conj(s) * q, s * p + c * q], axis=1)


def tournament(size: int) -> np.ndarray:
    """For each of an even number of positions the one whose content it takes over after a round."""
    half = size // 2
    if half == 1:
        return np.array([0, 1])
    return np.array([0, half, *range(1, half - 1), *range(half + 1, size), half - 1])


def sweeps(once: Callable[[Any], tuple[Any, Any]], start: Any) -> Any:
    """Sweeps until one of them has rotated nothing."""

    def goes_on(carry):
        count, moved, _ = carry
        return moved & (count < MOST_SWEEPS)

    def sweep(carry):
        count, _, state = carry
        state, moved = once(state)
        return count + 1, moved, state

    return lax.while_loop(goes_on, sweep, (jnp.int32(0), jnp.bool_(True), start))[2]


def padded(x: Any) -> Any:
    """With rows and columns of zeros up to an even number, two at the least."""
    size = max(2, x.shape[1] + x.shape[1] % 2)
    return jnp.pad(x, ((0, 0), (0, size - x.shape[1])))
