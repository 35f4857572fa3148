"""jaxoplanet: light curves of transits."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxoplanet.light_curves import limb_dark_light_curve
from jaxoplanet.orbits.keplerian import Central, System


def light_curve():
    """Two planets on eccentric orbits before a star with a dark limb, at 600 times."""
    times = jnp.linspace(0.0, 12.0, 600)

    def curve(params):
        system = System(Central(mass=params["mass"], radius=1.0))
        for i in range(2):
            system = system.add_body(
                period=params["period"][i],
                time_transit=params["transit"][i],
                radius=params["radius"][i],
                impact_param=params["impact"][i],
                eccentricity=params["eccentricity"][i],
                omega_peri=params["omega"][i],
            )
        return jnp.sum(limb_dark_light_curve(system, params["limb"])(times), axis=-1)

    params = {
        "mass": 1.1,
        "period": jnp.array([3.2, 5.1]),
        "transit": jnp.array([1.0, 2.3]),
        "radius": jnp.array([0.1, 0.06]),
        "impact": jnp.array([0.3, 0.5]),
        "eccentricity": jnp.array([0.1, 0.2]),
        "omega": jnp.array([0.4, -0.7]),
        "limb": jnp.array([0.3, 0.2]),
    }
    seen = curve(jax.tree.map(lambda x: 1.01 * x, params))

    def loss(params):
        return 1e4 * jnp.mean((curve(params) - seen) ** 2)

    return loss, (jax.tree.map(jnp.asarray, params),)
