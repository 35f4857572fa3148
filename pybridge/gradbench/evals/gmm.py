"""The logarithm of a Gaussian mixture's posterior probability, with a Wishart prior, and its gradient.

Srajer, Kukelova and Fitzgibbon, A benchmark of selected algorithmic differentiation tools on some problems
in computer vision and machine learning, Optimization Methods and Software 33 (2018), as GradBench fixed it.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..function import Bridge, Function, Operands, plain
from ..inputs import Input
from .lse import logsumexp

Parameters = dict[str, jax.Array]
"""alpha, mu, q and l: weights before normalisation, means, and the roots Q of the precision matrices."""


def roots(q: jax.Array, lower: jax.Array) -> jax.Array:
    """Q of each component: exp(q) on the diagonal, and below it `lower`, column by column."""
    components, dimension = q.shape
    columns, rows = np.triu_indices(dimension, 1)
    below = jnp.zeros((components, dimension, dimension)).at[:, rows, columns].set(lower)
    return below + jnp.exp(q)[:, :, None] * jnp.eye(dimension)


def log_likelihood(parameters: Parameters, x: jax.Array) -> jax.Array:
    alpha, mu, q = parameters["alpha"], parameters["mu"], parameters["q"]
    points, dimension = x.shape
    whitened = jnp.einsum("kij,nkj->nki", roots(q, parameters["l"]), x[:, None, :] - mu)
    beta = alpha + jnp.sum(q, axis=1) - 0.5 * jnp.sum(whitened**2, axis=2)
    constant = 0.5 * dimension * math.log(2 * math.pi) + logsumexp(alpha)
    return jnp.sum(logsumexp(beta)) - points * constant


def log_prior(parameters: Parameters, gamma: jax.Array, m: int) -> jax.Array:
    q = parameters["q"]
    components, dimension = q.shape
    n = dimension + m + 1
    squares = jnp.sum(jnp.exp(q) ** 2) + jnp.sum(parameters["l"] ** 2)
    normaliser = n * dimension * jnp.log(gamma / math.sqrt(2)) - _log_multigamma(n / 2, dimension)
    return components * normaliser - 0.5 * gamma**2 * squares + m * jnp.sum(q)


def log_posterior(parameters: Parameters, x: jax.Array, gamma: jax.Array, *, m: int) -> jax.Array:
    return log_likelihood(parameters, x) + log_prior(parameters, gamma, m)


def _log_multigamma(a: float, dimension: int) -> float:
    product = sum(math.lgamma(a - j / 2) for j in range(dimension))
    return 0.25 * dimension * (dimension - 1) * math.log(math.pi) + product


def _read(value: Input) -> Operands:
    d, k, n = (value.at(name).integer(at_least=1) for name in ("d", "k", "n"))
    shapes: dict[str, Any] = {"alpha": (k,), "mu": (k, d), "q": (k, d), "l": (k, d * (d - 1) // 2)}
    parameters = {name: value.at(name).floats(*shape) for name, shape in shapes.items()}
    arrays = (parameters, value.at("x").floats(n, d), value.at("gamma").number())
    return Operands(arrays, {"m": value.at("m").integer(at_least=0)})


def functions(bridge: Bridge) -> dict[str, Function]:
    bridged = bridge(log_posterior, static_argnames="m")
    return {
        "objective": Function(bridged, _read, plain),
        "jacobian": Function(jax.grad(bridged), _read, plain),
    }
