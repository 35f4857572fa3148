"""jaxlie: rotations and rigid motions."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import jaxlie


def pose_graph():
    """A ring of 30 poses whose neighbours have been measured, by the tangent of each."""
    steps = jax.vmap(jaxlie.SE3.exp)(
        jnp.tile(jnp.array([0.3, 0.0, 0.02, 0.0, 0.1, 2 * jnp.pi / 30]), (30, 1))
    )

    def loss(tangents):
        poses = jax.vmap(jaxlie.SE3.exp)(tangents)
        following = jaxlie.SE3(jnp.roll(poses.wxyz_xyz, -1, axis=0))
        errors = jax.vmap(lambda a, b, s: (s.inverse() @ a.inverse() @ b).log())(poses, following, steps)
        return jnp.sum(errors**2) + jnp.sum(tangents[0] ** 2)

    return loss, (0.3 * jax.random.normal(jax.random.key(0), (30, 6)),)
