"""equinox: modules as pytrees."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp


def recurrent():
    """A GRU over 64 steps of a batch of 16, in float32 as networks are."""

    class Network(eqx.Module):
        cell: eqx.nn.GRUCell
        last: eqx.nn.Linear

        def __call__(self, xs):
            hidden, _ = jax.lax.scan(lambda h, x: (self.cell(x, h), None), jnp.zeros(24, xs.dtype), xs)
            return self.last(hidden)[0]

    keys = jax.random.split(jax.random.key(0), 4)
    network = Network(eqx.nn.GRUCell(4, 24, key=keys[0]), eqx.nn.Linear(24, 1, key=keys[1]))
    params, static = eqx.partition(network, eqx.is_inexact_array)
    sequences = jax.random.normal(keys[2], (16, 64, 4))
    targets = jax.random.normal(keys[3], (16,))

    def loss(params):
        return jnp.mean((jax.vmap(eqx.combine(params, static))(sequences) - targets) ** 2)

    return loss, (params,)


def checkpointed_loop():
    """A loop of unknown length with checkpoints: steps of a pendulum until it has lost its energy."""

    def loss(params):
        def swinging(state):
            angle, speed = state
            return 0.5 * speed**2 + 1 - jnp.cos(angle) > 0.05

        def step(state):
            angle, speed = state
            speed = speed - 0.02 * (jnp.sin(angle) + params["drag"] * speed)
            return angle + 0.02 * speed, speed

        start = (params["angle"], jnp.zeros_like(params["angle"]))
        angle, speed = eqx.internal.while_loop(swinging, step, start, max_steps=2048, kind="checkpointed")
        return angle**2 + 2 * speed**2

    return loss, ({"drag": jnp.array(0.2), "angle": jnp.array(2.0)},)


def physics_informed():
    """The residual of the Korteweg-de Vries equation: a network's third derivatives at 256 points."""
    network = eqx.nn.MLP(2, "scalar", 32, 3, activation=jnp.tanh, key=jax.random.key(0))
    params, static = eqx.partition(network, eqx.is_inexact_array)
    points = jax.random.uniform(jax.random.key(1), (256, 2), minval=-1.0, maxval=1.0)

    def residual(u, x, t):
        slope = jax.grad(u)
        third = jax.grad(jax.grad(slope))
        return jax.grad(u, 1)(x, t) + 6 * u(x, t) * slope(x, t) + third(x, t)

    def loss(params):
        network = eqx.combine(params, static)

        def u(x, t):
            return network(jnp.stack([x, t]))

        return jnp.mean(jax.vmap(lambda p: residual(u, p[0], p[1]))(points) ** 2)

    return loss, (params,)
