"""s2fft: spherical harmonic transforms by recursion."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import s2fft


def round_trip():
    """The power at each degree of a signal on the sphere that was passed through a filter, with L = 16."""
    size = 16
    degrees = jnp.arange(size)[:, None]

    def loss(params):
        harmonics = s2fft.forward_jax(params["signal"], size)
        filtered = harmonics * jnp.exp(-params["width"] * degrees * (degrees + 1))
        back = s2fft.inverse_jax(filtered, size)
        return jnp.mean(jnp.abs(back) ** 2) + jnp.sum(jnp.abs(harmonics[:4]) ** 2)

    signal = jax.random.normal(jax.random.key(0), (size, 2 * size - 1))
    return loss, ({"signal": signal, "width": jnp.array(0.01)},)
