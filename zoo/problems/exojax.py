"""exojax: spectra of planets' atmospheres."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from exojax.opacity.lpf.lpf import xsmatrix
from exojax.rt import ArtEmisPure


def emission():
    """The light of an atmosphere of 30 layers with 15 Voigt lines, by temperature, abundance and gravity."""
    waves = jnp.linspace(4300.0, 4310.0, 200)
    centers = jnp.linspace(4300.5, 4309.5, 15)
    art = ArtEmisPure(
        pressure_top=1e-6, pressure_btm=1e2, nlayer=30, nu_grid=waves, rtsolver="ibased", nstream=8
    )
    distances = waves[None, :] - centers[:, None]

    def loss(params):
        temperature = art.powerlaw_temperature(params["temperature"], params["index"])
        pressure = jnp.asarray(art.pressure)
        doppler = 0.01 * jnp.sqrt(temperature / 1000)[:, None] * jnp.ones(15)
        lorentz = 0.05 * pressure[:, None] * (1000 / temperature[:, None]) ** 0.5 * jnp.ones(15)
        strength = 1e-20 * jnp.exp(-500 * jnp.linspace(0.5, 2.0, 15) / temperature[:, None])
        sections = xsmatrix(distances, doppler, lorentz, strength)
        abundance = jnp.exp(params["log_abundance"]) * jnp.ones(30)
        depth = art.opacity_profile_xs(sections, abundance, 28.0, params["gravity"])
        flux = art.run(depth, temperature)
        return jnp.mean((flux / 1e4 - 1) ** 2)

    start = {"temperature": 1200.0, "index": 0.1, "log_abundance": -5.0, "gravity": 2500.0}
    return loss, (jax.tree.map(jnp.asarray, start),)
