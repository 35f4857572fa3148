"""e3nn-jax: equivariant functions of points in space."""

from __future__ import annotations

import e3nn_jax as e3nn
import jax
import jax.numpy as jnp


def tensor_product():
    """Forces: the energy is of messages that are tensor products of features and spherical harmonics."""
    positions = jax.random.normal(jax.random.key(0), (12, 3))
    senders, receivers = (index.reshape(-1) for index in jnp.nonzero(~jnp.eye(12, dtype=bool), size=132))
    layer = e3nn.flax.Linear("4x0e + 2x1o")
    features = e3nn.normal("4x0e + 2x1o", jax.random.key(1), (12,))

    def messages(positions):
        edges = positions[receivers] - positions[senders]
        harmonics = e3nn.spherical_harmonics("0e + 1o + 2e", edges, normalize=True)
        lengths = jnp.linalg.norm(edges, axis=1, keepdims=True)
        return e3nn.tensor_product(features[senders], harmonics) * jnp.exp(-(lengths**2))

    weights = layer.init(jax.random.key(2), messages(positions))

    def energy(params):
        mixed = layer.apply(params["weights"], messages(params["positions"]))
        gathered = e3nn.scatter_sum(mixed, dst=receivers, output_size=12)
        return jnp.sum(e3nn.norm(gathered, squared=True).array)

    return energy, ({"weights": weights, "positions": positions},)
