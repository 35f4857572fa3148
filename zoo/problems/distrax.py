"""distrax: distributions and bijectors."""

from __future__ import annotations

import distrax
import jax
import jax.numpy as jnp


def mixture():
    """The log likelihood of 500 points under a mixture of six Gaussians in three dimensions."""
    points = jax.random.normal(jax.random.key(0), (500, 3)) + 2 * (jnp.arange(500) % 3)[:, None]

    def loss(params):
        components = distrax.MultivariateNormalTri(
            params["places"], jax.vmap(jnp.diag)(jnp.exp(params["scales"]))
        )
        mixed = distrax.MixtureSameFamily(distrax.Categorical(logits=params["logits"]), components)
        return -jnp.mean(mixed.log_prob(points))

    params = {
        "logits": jnp.zeros(6),
        "places": jax.random.normal(jax.random.key(1), (6, 3)),
        "scales": jnp.zeros((6, 3)),
    }
    return loss, (params,)


def spline_bijector():
    """Points pushed through a chain of an affine map and a rational quadratic spline, with its Jacobian."""
    points = jax.random.normal(jax.random.key(2), (200, 4))

    def loss(params):
        flow = distrax.Transformed(
            distrax.MultivariateNormalDiag(jnp.zeros(4), jnp.ones(4)),
            distrax.Chain(
                [
                    distrax.Block(distrax.ScalarAffine(params["shift"], log_scale=params["log_scale"]), 1),
                    distrax.Block(distrax.RationalQuadraticSpline(params["knots"], -3.0, 3.0), 1),
                ]
            ),
        )
        return -jnp.mean(flow.log_prob(points))

    params = {
        "shift": jnp.zeros(4) + 0.1,
        "log_scale": jnp.zeros(4) - 0.1,
        "knots": jax.random.normal(jax.random.key(3), (4, 3 * 8 + 1)),
    }
    return loss, (params,)


def hidden_markov():
    """distrax's own hidden Markov model: its forward and backward passes."""
    observed = jnp.sin(0.3 * jnp.arange(120.0))

    def loss(params):
        model = distrax.HMM(
            init_dist=distrax.Categorical(logits=jnp.zeros(3)),
            trans_dist=distrax.Categorical(logits=params["move"]),
            obs_dist=distrax.Normal(params["places"], jnp.exp(params["scales"])),
        )
        _, _, smoothed, log_prob = model.forward_backward(observed)
        return -log_prob + jnp.mean(smoothed[:, 0] ** 2)

    return loss, (
        {
            "move": jax.random.normal(jax.random.key(4), (3, 3)),
            "places": jnp.arange(3.0) - 1,
            "scales": jnp.zeros(3),
        },
    )
