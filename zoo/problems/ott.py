"""ott-jax: optimal transport."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from ott.geometry import pointcloud
from ott.solvers import linear
from ott.tools import soft_sort


def _clouds():
    first, second = jax.random.split(jax.random.key(0))
    return jax.random.normal(first, (40, 3)), 0.5 * jax.random.normal(second, (50, 3)) + 1


def sinkhorn_implicit():
    """The regularised distance of two clouds, with its fixed point differentiated implicitly."""
    source, target = _clouds()

    def loss(source):
        geometry = pointcloud.PointCloud(source, target, epsilon=0.1)
        out = linear.solve(geometry, threshold=1e-9, max_iterations=5000)
        return out.reg_ot_cost + jnp.sum(out.f**2)

    return loss, (source,)


def sinkhorn_unrolled():
    """The same through a hundred iterations."""
    source, target = _clouds()

    def loss(source):
        geometry = pointcloud.PointCloud(source, target, epsilon=0.1)
        out = linear.solve(
            geometry, implicit_diff=None, min_iterations=100, max_iterations=100, use_danskin=False
        )
        return out.reg_ot_cost + jnp.sum(out.f**2)

    return loss, (source,)


def soft_ranks():
    """Spearman's correlation by soft ranks."""
    values = jax.random.normal(jax.random.key(1), (60,))
    others = jnp.sin(values) + 0.1 * jnp.cos(7 * values)

    def loss(values):
        ranks = soft_sort.ranks(values, epsilon=0.01)
        wanted = jnp.argsort(jnp.argsort(others)).astype(ranks.dtype)
        return jnp.mean((ranks - wanted) ** 2)

    return loss, (values,)
