"""brax: rigid bodies by its spring and generalized pipelines."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from brax.generalized import pipeline as generalized
from brax.io import mjcf
from brax.spring import pipeline as spring

_PENDULUM = """
<mujoco>
  <option timestep="0.01"/>
  <worldbody>
    <body name="cart"><joint name="slide" type="slide" axis="1 0 0" damping="0.5"/>
      <geom type="capsule" size=".1" fromto="-.1 0 0 .1 0 0" contype="0" conaffinity="0"/>
      <body name="pole"><joint name="hinge" type="hinge" axis="0 1 0" damping="0.02"/>
        <geom type="capsule" size=".05" fromto="0 0 0 .2 0 .6" contype="0" conaffinity="0"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor joint="slide" gear="20"/></actuator>
</mujoco>
"""


def _swing(pipeline):
    """A pendulum on a cart after 50 steps, by the force at each."""
    system = mjcf.loads(_PENDULUM)

    def loss(forces):
        state = pipeline.init(system, jnp.array([0.0, 0.1]), jnp.zeros(2))

        def step(state, force):
            state = pipeline.step(system, state, force[None])
            return state, state.q

        _, path = jax.lax.scan(step, state, forces)
        return jnp.mean(path[:, 1] ** 2) + 0.1 * jnp.mean(path[:, 0] ** 2)

    return loss, (0.3 * jnp.sin(0.2 * jnp.arange(50.0)),)


def generalized_pendulum():
    return _swing(generalized)


def spring_pendulum():
    return _swing(spring)
