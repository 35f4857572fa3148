"""ADBench's Gaussian mixture and LSTM, from the published formulas, on data of our own.

Srajer, Kukelova and Fitzgibbon, A benchmark of selected algorithmic differentiation tools on some problems in
computer vision and machine learning, Optimization Methods and Software 33 (2018).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp, multigammaln

from ..case import Case, Limit, Problem, against_grad, gradient

_GAMMA, _M = 1.0, 0  # of the Wishart prior


def mixture(quick: bool) -> tuple[Callable, tuple]:
    """The function and its arguments.

    The log-likelihood of points under Gaussians whose inverse covariances are Qᵀ Q, and their prior.

    Q is lower triangular: the exponential of q on the diagonal, `lower`'s elements below it.
    """
    points, dimension, components = (5, 2, 2) if quick else (1000, 10, 25)
    random = np.random.default_rng(0)
    below = np.tril_indices(dimension, -1)

    def roots(q, lower):
        strict = jnp.zeros((components, dimension, dimension)).at[:, below[0], below[1]].set(lower)
        return strict + jnp.exp(q)[:, :, None] * jnp.eye(dimension)

    def prior(q, lower):
        n = dimension + _M + 1
        squares = jnp.sum(jnp.exp(q) ** 2) + jnp.sum(lower**2)
        normaliser = n * dimension * math.log(_GAMMA / math.sqrt(2)) - multigammaln(0.5 * n, dimension)
        return 0.5 * _GAMMA**2 * squares - _M * jnp.sum(q) - components * normaliser

    def objective(alphas, means, q, lower, x):
        apart = x[:, None, :] - means
        whitened = jnp.einsum("kij,nkj->nki", roots(q, lower), apart)
        terms = alphas + jnp.sum(q, axis=1) - 0.5 * jnp.sum(whitened**2, axis=2)
        constant = -0.5 * points * dimension * math.log(2 * math.pi)
        likelihood = constant + jnp.sum(logsumexp(terms, axis=1)) - points * logsumexp(alphas)
        return likelihood + prior(q, lower)

    args = (
        random.standard_normal(components),
        random.standard_normal((components, dimension)),
        0.3 * random.standard_normal((components, dimension)),
        0.3 * random.standard_normal((components, len(below[0]))),
        random.standard_normal((points, dimension)),
    )
    return objective, args


def _mixture(quick: bool) -> Problem:
    return gradient(*mixture(quick), (0, 1, 2, 3))


def _lstm(quick: bool) -> Problem:
    """A character model of two layers whose gates act element by element, and its loss over a text."""
    layers, length, bits = (2, 4, 3) if quick else (2, 1024, 14)
    random = np.random.default_rng(0)

    def layer(weight, bias, hidden, cell, x):
        of_x, of_hidden = x * weight[::2] + bias[::2], hidden * weight[1::2] + bias[1::2]
        forget, out = jax.nn.sigmoid(of_x)
        cell = cell * forget + jax.nn.sigmoid(of_hidden[0]) * jnp.tanh(of_hidden[1])
        return out * jnp.tanh(cell), cell

    def objective(weights, biases, ends, state, text):
        def step(state, pair):
            x, following = pair
            x = x * ends[0]
            new = []
            for k in range(layers):
                x, cell = layer(weights[k], biases[k], state[k, 0], state[k, 1], x)
                new.append(jnp.stack([x, cell]))
            guess = x * ends[1] + ends[2]
            return jnp.stack(new), jnp.sum(following * (guess - jnp.log(jnp.sum(jnp.exp(guess)) + 2)))

        _, gains = jax.lax.scan(step, state, (text[:-1], text[1:]))
        return -jnp.sum(gains) / (bits * (length - 1))

    args = (
        *(0.5 * random.standard_normal((2, layers, 4, bits))),
        random.standard_normal((3, bits)),
        random.standard_normal((layers, 2, bits)),
        random.integers(0, 2, (length, bits)).astype(float),
    )
    return gradient(objective, args, (0, 1, 2))


CASES = (
    Case("gmm", "ADBench: Gaussian mixture, 1000 points, d = 10, k = 25", against_grad(1), _mixture),
    Case(
        "lstm",
        "- LSTM, 2 layers, 1024 characters of 14 bits",
        against_grad(3),
        _lstm,
        limit=Limit("lstm.jl"),
    ),
)
