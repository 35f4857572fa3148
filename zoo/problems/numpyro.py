"""numpyro: log densities of models, which its samplers differentiate."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from numpyro import handlers
from numpyro.contrib.control_flow import scan
from numpyro.infer.util import initialize_model


def _potential(model: Callable, *args) -> tuple[Callable, tuple]:
    """The negative log density in unconstrained coordinates, which NUTS follows."""
    info = initialize_model(jax.random.key(1), model, model_args=args)
    return info.potential_fn, (info.param_info.z,)


def regression():
    """A hierarchical regression: 12 groups, whose slopes and levels share priors."""
    group = jnp.arange(240) % 12
    x = jax.random.normal(jax.random.key(0), (240,))
    y = 0.3 * group + (1 + 0.1 * group) * x

    def model(group, x, y):
        spread = numpyro.sample("spread", dist.HalfCauchy(2.0))
        correlation = numpyro.sample("correlation", dist.LKJCholesky(2, concentration=1.5))
        scale = numpyro.sample("scale", dist.HalfNormal(1.0).expand([2]).to_event(1))
        with numpyro.plate("groups", 12):
            lines = numpyro.sample(
                "lines", dist.MultivariateNormal(jnp.zeros(2), scale_tril=scale[:, None] * correlation)
            )
        mean = lines[group, 0] + lines[group, 1] * x
        numpyro.sample("y", dist.StudentT(4.0, mean, spread), obs=y)

    return _potential(model, group, x, y)


def scanned():
    """A stochastic volatility model, whose latent walk is numpyro's scan."""
    returns = 0.02 * jax.random.normal(jax.random.key(2), (300,))

    def model(returns):
        step = numpyro.sample("step", dist.Exponential(50.0))
        persistence = numpyro.sample("persistence", dist.Beta(20.0, 1.5))

        def move(level, y):
            level = numpyro.sample("level", dist.Normal(persistence * level, step))
            numpyro.sample("returns", dist.Normal(0.0, jnp.exp(level - 4)), obs=y)
            return level, None

        scan(move, jnp.array(0.0), returns)

    return _potential(model, returns)


def enumerated():
    """A hidden Markov model whose four states are summed over, by numpyro's enumeration in its scan."""
    sounds = jax.random.randint(jax.random.key(3), (200,), 0, 10)

    def model(sounds):
        move = numpyro.sample("move", dist.Dirichlet(jnp.eye(4) * 5 + 1).to_event(1))
        emit = numpyro.sample("emit", dist.Dirichlet(jnp.ones((4, 10))).to_event(1))

        def step(state, sound):
            state = numpyro.sample("state", dist.Categorical(move[state]), infer={"enumerate": "parallel"})
            numpyro.sample("sound", dist.Categorical(emit[state]), obs=sound)
            return state, None

        scan(step, 0, sounds)

    return _potential(model, sounds)


def variational():
    """The evidence bound of an automatic guide of a logistic regression, with four particles."""
    x = jax.random.normal(jax.random.key(4), (100, 8))
    y = (x @ jnp.linspace(-1, 1, 8) > 0).astype(jnp.int32)

    def model(x, y):
        weights = numpyro.sample("weights", dist.Laplace(0.0, 1.0).expand([8]).to_event(1))
        numpyro.sample("y", dist.Bernoulli(logits=x @ weights), obs=y)

    guide = numpyro.infer.autoguide.AutoMultivariateNormal(model)
    bound = numpyro.infer.Trace_ELBO(num_particles=4)
    with handlers.seed(rng_seed=5):
        guide(x, y)
    svi = numpyro.infer.SVI(model, guide, numpyro.optim.Adam(0.1), bound)
    params = svi.get_params(svi.init(jax.random.key(6), x, y))

    def loss(params):
        return bound.loss(jax.random.key(7), params, model, guide, x, y)

    return loss, (params,)
