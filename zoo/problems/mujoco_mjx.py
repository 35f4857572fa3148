"""mujoco-mjx: rigid bodies by MuJoCo's equations."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import mujoco
from mujoco import mjx

_ARM = """
<mujoco>
  <option timestep="0.01" integrator="implicitfast"><flag contact="disable" constraint="disable"/></option>
  <worldbody>
    <body><joint name="shoulder" axis="0 1 0" damping="0.1"/>
      <geom type="capsule" size=".04" fromto="0 0 0 .5 0 0"/>
      <body pos=".5 0 0"><joint name="elbow" axis="0 1 0" damping="0.1"/>
        <geom type="capsule" size=".03" fromto="0 0 0 .4 0 0"/>
        <body pos=".4 0 0"><joint name="wrist" axis="0 0 1" damping="0.05"/>
          <geom type="capsule" size=".02" fromto="0 0 0 .2 0 0"/><site name="hand" pos=".2 0 0"/>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator><motor joint="shoulder"/><motor joint="elbow"/><motor joint="wrist"/></actuator>
</mujoco>
"""


def arm():
    """Where the hand of an arm of three joints is after 40 steps, by the torques at each step."""
    model = mjx.put_model(mujoco.MjModel.from_xml_string(_ARM))
    data = mjx.make_data(model)
    goal = jnp.array([0.6, 0.2, 0.3])

    def loss(torques):
        def step(data, torque):
            data = mjx.step(model, data.replace(ctrl=torque))
            return data, data.qpos

        final, path = jax.lax.scan(step, data, torques)
        hand = mjx.kinematics(model, final).site_xpos[0]
        return jnp.sum((hand - goal) ** 2) + 1e-3 * jnp.mean(path**2)

    return loss, (0.5 * jnp.sin(jnp.arange(120.0).reshape(40, 3)),)
