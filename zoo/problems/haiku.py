"""haiku: transformed functions."""

from __future__ import annotations

import haiku as hk
import jax
import jax.numpy as jnp


def recurrent():
    """An LSTM unrolled over 50 steps by haiku's own scan."""

    def forward(sequences):
        core = hk.LSTM(20)
        outputs, _ = hk.dynamic_unroll(core, sequences, core.initial_state(sequences.shape[1]))
        return hk.Linear(1)(hk.LayerNorm(-1, create_scale=True, create_offset=True)(outputs))[..., 0]

    sequences = jax.random.normal(jax.random.key(0), (50, 16, 5))
    targets = jnp.sin(jnp.cumsum(sequences[..., 0], axis=0))
    network = hk.without_apply_rng(hk.transform(forward))
    params = network.init(jax.random.key(1), sequences)

    def loss(params):
        return jnp.mean((network.apply(params, sequences) - targets) ** 2)

    return loss, (params,)
