"""matfree: functions of matrices that are known by their products alone."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from matfree import decomp, funm, stochtrace


def log_determinant():
    """The log determinant of a kernel matrix by stochastic Lanczos quadrature."""
    points = jnp.linspace(0.0, 3.0, 60)
    sampler = stochtrace.sampler_signs(points, num=8)

    def loss(params):
        distances = (points[:, None] - points[None, :]) ** 2
        matrix = jnp.exp(-distances / jnp.exp(params["scale"])) + jnp.exp(params["noise"]) * jnp.eye(60)
        quadratic = funm.monte_carlo_funm_sym_logdet(decomp.tridiag_sym(12))
        estimate = stochtrace.estimator_monte_carlo(quadratic, sampler=sampler)
        return estimate(lambda v, m: m @ v, jax.random.key(0), matrix) / 60

    return loss, ({"scale": jnp.array(-1.0), "noise": jnp.array(-2.0)},)
