"""optax: hyperparameters of a training run, and losses."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import optax


def learning_rate():
    """The loss after 200 steps of Adam under a schedule, as a function of its rate and of the start."""
    inputs = jax.random.normal(jax.random.key(0), (32, 6))
    targets = jnp.sin(inputs @ jnp.arange(1.0, 7.0))

    def objective(weights):
        hidden = jnp.tanh(inputs @ weights["in"])
        return jnp.mean(optax.huber_loss(hidden @ weights["out"], targets))

    def loss(params):
        schedule = optax.cosine_decay_schedule(1.0, 200)
        adam = optax.chain(
            optax.clip_by_global_norm(1.0), optax.scale_by_adam(), optax.scale_by_schedule(schedule)
        )

        def step(carry, _):
            weights, state = carry
            updates, state = adam.update(jax.grad(objective)(weights), state, weights)
            updates = jax.tree.map(lambda u: -params["rate"] * u, updates)
            return (optax.apply_updates(weights, updates), state), None

        start = params["start"]
        (weights, _), _ = jax.lax.scan(step, (start, adam.init(start)), length=200)
        return objective(weights)

    keys = jax.random.split(jax.random.key(1))
    start = {"in": 0.5 * jax.random.normal(keys[0], (6, 8)), "out": 0.5 * jax.random.normal(keys[1], (8,))}
    return loss, ({"rate": jnp.array(0.02), "start": start},)


def ctc():
    """The connectionist loss of a batch of four padded sequences, a scan over time."""
    labels = jnp.array([[1, 2, 3, 2, 1], [3, 3, 1, 0, 0], [2, 1, 2, 1, 0], [1, 0, 0, 0, 0]])
    frames = jnp.arange(40)[None] >= jnp.array([40, 31, 36, 20])[:, None]
    padded = jnp.asarray(labels == 0, jnp.float64)

    def loss(logits):
        return jnp.mean(optax.ctc_loss(logits, jnp.asarray(frames, jnp.float64), labels, padded))

    return loss, (jax.random.normal(jax.random.key(4), (4, 40, 5)),)
