"""dynamax: marginal likelihoods of state space models, whose filters are scans."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from dynamax.hidden_markov_model import GaussianHMM, hmm_filter
from dynamax.linear_gaussian_ssm import LinearGaussianSSM
from dynamax.nonlinear_gaussian_ssm import ParamsNLGSSM, extended_kalman_filter


def hidden_markov():
    """Four states with Gaussian emissions along 300 steps."""
    model = GaussianHMM(4, 2)
    params, _ = model.initialize(jax.random.key(0))
    _, emissions = model.sample(params, jax.random.key(1), 300)

    def loss(params):
        return -model.marginal_log_prob(params, emissions)

    return loss, (params,)


def filter_of_logits():
    """The filter by itself, of eight states, as a function of the logits of its transitions."""
    likelihoods = jax.random.normal(jax.random.key(2), (400, 8))

    def loss(logits):
        filtered = hmm_filter(jnp.full(8, 1 / 8), jax.nn.softmax(logits), likelihoods)
        return -filtered.marginal_loglik

    return loss, (jax.random.normal(jax.random.key(3), (8, 8)),)


def linear_gaussian():
    """A Kalman filter of four latent dimensions along 200 steps."""
    model = LinearGaussianSSM(4, 2)
    params, _ = model.initialize(jax.random.key(4))
    _, emissions = model.sample(params, jax.random.key(5), 200)

    def loss(params):
        return -model.marginal_log_prob(params, emissions)

    return loss, (params,)


def extended_kalman():
    """A pendulum whose length and noise are unknown, seen by the sine of its angle."""
    angles = 1.2 * jnp.cos(0.15 * jnp.arange(150.0))
    emissions = jnp.sin(angles)[:, None]

    def loss(params):
        def move(state):
            angle, speed = state
            return jnp.stack([angle + 0.05 * speed, speed - 0.05 * params["pull"] * jnp.sin(angle)])

        model = ParamsNLGSSM(
            initial_mean=jnp.array([1.2, 0.0]),
            initial_covariance=0.1 * jnp.eye(2),
            dynamics_function=move,
            dynamics_covariance=jnp.exp(params["drift"]) * jnp.eye(2),
            emission_function=lambda state: jnp.sin(state[:1]),
            emission_covariance=jnp.exp(params["noise"]) * jnp.eye(1),
        )
        return -extended_kalman_filter(model, emissions).marginal_loglik

    return loss, ({"pull": jnp.array(9.0), "drift": jnp.array(-4.0), "noise": jnp.array(-3.0)},)
