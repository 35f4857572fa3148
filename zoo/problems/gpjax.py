"""gpjax: marginal likelihoods and variational bounds."""

from __future__ import annotations

import equinox as eqx
import gpjax as gpx
import jax
import jax.numpy as jnp
import paramax


def _data():
    inputs = jnp.sort(jnp.mod(jnp.arange(60.0) * 0.6180339887, 1.0))[:, None] * 6
    return gpx.Dataset(X=inputs, y=jnp.sin(2 * inputs) + 0.1 * jnp.cos(31 * inputs))


def marginal_likelihood():
    """Of a Matern kernel's parameters, in gpjax's unconstrained coordinates."""
    data = _data()
    prior = gpx.gps.Prior(mean_function=gpx.mean_functions.Constant(), kernel=gpx.kernels.Matern52())
    params, static = eqx.partition(prior * gpx.likelihoods.Gaussian(), eqx.is_inexact_array)

    def loss(params):
        model = paramax.unwrap(eqx.combine(params, static))
        return -gpx.objectives.conjugate_mll(model, data)

    return loss, (params,)


def variational():
    """The evidence bound of a sparse process with 15 inducing points."""
    data = _data()
    prior = gpx.gps.Prior(mean_function=gpx.mean_functions.Zero(), kernel=gpx.kernels.RBF())
    posterior = prior * gpx.likelihoods.Gaussian()
    family = gpx.variational_families.VariationalGaussian(
        posterior, inducing_inputs=jnp.linspace(0.0, 6.0, 15)[:, None]
    )
    params, static = eqx.partition(family, eqx.is_inexact_array)

    def loss(params):
        return -gpx.objectives.elbo(paramax.unwrap(eqx.combine(params, static)), data)

    return loss, (jax.tree.map(lambda x: x + 0.01, params),)
