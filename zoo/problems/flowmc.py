"""flowMC: the loss of its spline flow, and its Hamiltonian kernel."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from flowMC.resource.kernel.HMC import HMC
from flowMC.resource.model.nf_model.rqSpline import MaskedCouplingRQSpline


def spline_flow():
    """The negative log likelihood of 64 points under a flow of rational quadratic splines."""
    flow = MaskedCouplingRQSpline(3, 4, [16, 16], 6, jax.random.key(0))
    params, static = eqx.partition(flow, eqx.is_inexact_array)
    ring = jax.random.normal(jax.random.key(1), (64, 3))
    ring = 2 * ring / jnp.linalg.norm(ring, axis=1, keepdims=True)

    def loss(params):
        return -jnp.mean(jax.vmap(eqx.combine(params, static).log_prob)(ring))

    return loss, (params,)


def hamiltonian():
    """A chain of 30 of its HMC steps on a mixture, as a function of the mixture's places."""

    def log_density(x, places):
        return jax.nn.logsumexp(-0.5 * jnp.sum((x - places) ** 2, axis=-1))

    keys = jax.random.split(jax.random.key(2), 30)
    kernel = HMC(condition_matrix=jnp.ones(4), step_size=0.15, n_leapfrog=5)

    def loss(places):
        def step(carry, key):
            position, log_prob, _ = kernel.kernel(key, *carry, log_density, places)
            return (position, log_prob), None

        start = jnp.zeros(4)
        (position, _), _ = jax.lax.scan(step, (start, log_density(start, places)), keys)
        return jnp.sum(position**2)

    return loss, (jnp.array([[1.0, 0.5, -0.5, 0.2], [-1.0, 0.3, 0.8, -0.4]]),)
