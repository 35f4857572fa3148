"""blackjax: a density whose gradient its samplers take themselves, in a scan; then that density bridged."""

from __future__ import annotations

import blackjax
import jax
import jax.numpy as jnp


def _log_density(position):
    """A banana in ten dimensions."""
    first, rest = position[0], position[1:]
    return -0.5 * first**2 - 0.5 * jnp.sum((rest - 0.5 * (first**2 - 1)) ** 2)


def hamiltonian():
    """The mean square after 20 trajectories of HMC, as a function of step size and start.

    The noise is the same for all; accepting and rejecting is a step function, which has derivative zero.
    """
    keys = jax.random.split(jax.random.key(0), 20)

    def loss(params):
        kernel = blackjax.hmc(
            _log_density,
            step_size=params["step"],
            inverse_mass_matrix=jnp.exp(params["log_mass"]),
            num_integration_steps=8,
        )

        def step(state, key):
            state, _ = kernel.step(key, state)
            return state, state.position

        _, positions = jax.lax.scan(step, kernel.init(params["start"]), keys)
        return jnp.mean(positions**2)

    start = {"step": jnp.array(0.2), "log_mass": jnp.zeros(10), "start": jnp.linspace(-1.0, 1.0, 10)}
    return loss, (start,)


def langevin():
    """A path of 200 steps of the Metropolis-adjusted Langevin algorithm."""
    keys = jax.random.split(jax.random.key(1), 200)

    def loss(params):
        kernel = blackjax.mala(_log_density, params["step"])

        def step(state, key):
            state, info = kernel.step(key, state)
            return state, info.acceptance_rate

        final, rates = jax.lax.scan(step, kernel.init(params["start"]), keys)
        return jnp.sum(final.position**2) + jnp.mean(rates)

    return loss, ({"step": jnp.array(0.05), "start": jnp.linspace(-1.0, 1.0, 10)},)
