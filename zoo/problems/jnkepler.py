"""jnkepler: planets that pull at each other."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jnkepler.jaxttv import JaxTTV


def transit_times():
    """The transit times of two planets near a resonance over 400 days, by their orbits and masses."""
    periods = np.array([10.0, 20.2])
    observed = [np.arange(3.0, 390.0, periods[0]), np.arange(8.0, 390.0, periods[1])]
    errors = [np.full(len(times), 1e-3) for times in observed]
    model = JaxTTV(0.0, 400.0, 0.5, observed, periods, errorobs=errors, print_info=False)
    wanted = jnp.concatenate([jnp.asarray(times) for times in observed])

    def loss(params):
        planets = dict(params, cosi=jnp.zeros(2), lnode=jnp.zeros(2), smass=1.0)
        times, _ = model.get_transit_times_obs(planets)
        return jnp.sum((times - wanted) ** 2)

    start = {
        "period": periods,
        "tic": np.array([3.0, 8.0]),
        "ecosw": np.array([0.01, -0.02]),
        "esinw": np.array([0.02, 0.01]),
        "pmass": np.array([3e-5, 2e-5]),
    }
    return loss, (jax.tree.map(jnp.asarray, start),)
