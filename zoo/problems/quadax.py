"""quadax: integrals as functions of parameters and limits."""

from __future__ import annotations

import jax.numpy as jnp
import quadax


def adaptive():
    """An oscillating integrand on a half line, by adaptive Gauss-Kronrod rules."""

    def loss(params):
        def integrand(t, decay, rate):
            return jnp.exp(-decay * t) * jnp.sin(rate * t**2) / (1 + t)

        value, _ = quadax.quadgk(
            integrand,
            jnp.array([0.0, 1.0, 6.0]),
            args=(params["decay"], params["rate"]),
            epsabs=1e-10,
            epsrel=1e-10,
        )
        return value**2

    return loss, ({"decay": jnp.array(0.7), "rate": jnp.array(3.0)},)


def romberg():
    """The period of a pendulum as a function of its amplitude, by Romberg's rule."""

    def loss(amplitude):
        modulus = jnp.sin(amplitude / 2) ** 2
        quarter, _ = quadax.romberg(
            lambda t: 1 / jnp.sqrt(1 - modulus * jnp.sin(t) ** 2), jnp.array([0.0, jnp.pi / 2])
        )
        return 4 * quarter

    return loss, (jnp.array(1.5),)
