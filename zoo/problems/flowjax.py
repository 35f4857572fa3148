"""flowjax: normalising flows."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import paramax
from flowjax.bijections import RationalQuadraticSpline
from flowjax.distributions import Normal
from flowjax.flows import coupling_flow, masked_autoregressive_flow


def _likelihood(flow):
    params, static = eqx.partition(
        flow, eqx.is_inexact_array, is_leaf=lambda x: isinstance(x, paramax.NonTrainable)
    )
    angles = jax.random.uniform(jax.random.key(1), (100,), maxval=2 * jnp.pi)
    radii = 1 + 0.1 * jax.random.normal(jax.random.key(2), (100,))
    points = jnp.stack([radii * jnp.cos(angles), radii * jnp.sin(angles)], axis=1)

    def loss(params):
        return -jnp.mean(paramax.unwrap(eqx.combine(params, static)).log_prob(points))

    return loss, (params,)


def coupling():
    """Splines coupled by networks, on points of a ring."""
    return _likelihood(
        coupling_flow(
            jax.random.key(0),
            base_dist=Normal(jnp.zeros(2)),
            transformer=RationalQuadraticSpline(knots=6, interval=4),
            flow_layers=4,
            nn_width=20,
        )
    )


def autoregressive():
    """Masked autoregressive layers, which flowjax scans over."""
    return _likelihood(
        masked_autoregressive_flow(
            jax.random.key(3), base_dist=Normal(jnp.zeros(2)), flow_layers=4, nn_width=20
        )
    )
