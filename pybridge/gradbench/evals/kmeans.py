"""The cost of centroids, the sum of the squared distances of points from the nearest, and its Newton step.

The Hessian is diagonal, so that its product with ones is all of it: the derivative of the gradient along
ones, forward over reverse.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ..function import Bridge, Function, Operands, plain
from ..inputs import Input


def cost(centroids: jax.Array, points: jax.Array) -> jax.Array:
    """The nearest centroid is found by |c|² - 2 c·p, and its distance then by the difference.

    Digits cancel in the former: of two centroids that are equally near but for rounding it may be the other.
    """
    fixed = jax.lax.stop_gradient(centroids)  # which is the nearest does not change with them
    nearest = jnp.argmin(jnp.sum(fixed**2, axis=1) - 2 * points @ fixed.T, axis=1)
    return jnp.sum((centroids[nearest] - points) ** 2)


def _read(value: Input) -> Operands:
    centroids = value.at("centroids").floats(None, None)
    return Operands((centroids, value.at("points").floats(None, centroids.shape[1])))


def functions(bridge: Bridge) -> dict[str, Function]:
    bridged = bridge(cost)

    def direction(centroids: jax.Array, points: jax.Array) -> jax.Array:
        gradient = jax.grad(lambda c: bridged(c, points))
        slope, curvature = jax.jvp(gradient, (centroids,), (jnp.ones_like(centroids),))
        return slope / curvature

    return {
        "cost": Function(bridged, _read, plain),
        "dir": Function(direction, _read, plain),
    }
