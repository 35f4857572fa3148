"""Small mechanical systems: a few bodies for many steps, and a long chain of joints unrolled."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from ..case import Case, Limit, Problem, against_grad, gradient

_JOINTS = 35


def _leapfrog(quick: bool) -> Problem:
    """Four bodies under softened gravity, by kick, drift and kick (Verlet's method)."""
    steps = 5 if quick else 1000
    dt, softening = 2e-3, 0.1

    def acceleration(masses, q):
        between = q[None, :, :] - q[:, None, :]
        squared = jnp.sum(between**2, axis=-1) + softening
        return jnp.sum(masses[None, :, None] * between / (squared * jnp.sqrt(squared))[:, :, None], axis=1)

    def loss(masses, q, v):
        def step(state, _):
            q, v = state
            v = v + 0.5 * dt * acceleration(masses, q)
            q = q + dt * v
            return (q, v + 0.5 * dt * acceleration(masses, q)), None

        (q, v), _ = jax.lax.scan(step, (q, v), None, length=steps)
        return 0.5 * jnp.sum(masses[:, None] * v**2) + jnp.sum(q**2)

    random = np.random.default_rng(0)
    masses = random.uniform(0.5, 1.5, 4)
    args = masses, random.standard_normal((4, 3)), 0.3 * random.standard_normal((4, 3))
    return gradient(loss, args, (0, 1, 2), (steps, dt, softening))


def _kinematics(quick: bool) -> Problem:
    """Where a chain of revolute joints ends: 4x4 transforms about x, y, z in turn, multiplied out."""
    joints = 4 if quick else _JOINTS

    def about(axis, angle, link):
        c, s = jnp.cos(angle), jnp.sin(angle)
        i, j = (axis + 1) % 3, (axis + 2) % 3
        rotation = jnp.eye(4).at[i, i].set(c).at[j, j].set(c).at[i, j].set(-s).at[j, i].set(s)
        return rotation.at[:3, 3].set(link)

    def loss(angles, links, goal):
        pose = jnp.eye(4)
        for k in range(joints):
            pose = pose @ about(k % 3, angles[k], links[k])
        return jnp.sum((pose[:3, 3] - goal) ** 2)

    random = np.random.default_rng(0)
    args = random.uniform(-1, 1, joints), 0.2 * random.standard_normal((joints, 3)), np.ones(3)
    return gradient(loss, args)


def _case(name, title, make, limit) -> Case:
    return Case(name, title, against_grad(3), make, limit=Limit(limit))


CASES = (
    _case("leapfrog", "4-body leapfrog, 1000 steps", _leapfrog, "leapfrog.jl"),
    _case("kinematics", f"forward kinematics of {_JOINTS} joints, unrolled", _kinematics, "kinematics.jl"),
)
