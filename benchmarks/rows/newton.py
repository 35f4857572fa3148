"""Truncated Newton-CG, the example of JAX's first paper, on its three problems.

Frostig, Johnson and Leary, Compiling machine learning programs via high-level tracing, 2018. The method:
Nocedal and Wright, Numerical Optimization, algorithm 7.1, with as many conjugate gradients in each step as
given, so that both sides do the same work; a Hessian meets a vector by forward over reverse mode.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp

from ..case import Case, Limit, Problem, Requirement, native

JIT = "JAX"
_NEWTON, _CONJUGATE = 5, 10


def _direction(hessian: Callable, slope):
    """-H⁻¹ g by conjugate gradients, which stand still from where the curvature is not positive."""

    def step(_, state):
        p, residual, d, squared = state
        bent = hessian(d)
        curvature = jnp.vdot(d, bent)
        good = curvature > 1e-12 * squared
        alpha = jnp.where(good, squared / jnp.where(good, curvature, 1.0), 0.0)
        residual = residual + alpha * bent
        left = jnp.vdot(residual, residual)
        beta = jnp.where(good, left / jnp.maximum(squared, 1e-300), 0.0)
        return p + alpha * d, residual, jnp.where(good, beta * d - residual, d), left

    start = jnp.zeros_like(slope), slope, -slope, jnp.vdot(slope, slope)
    return jax.lax.fori_loop(0, _CONJUGATE, step, start)[0]


def _minimize(objective: Callable, x, *data):
    """Where Newton's method is after its steps, and the objective's value there."""

    def step(_, x):
        slope = jax.grad(objective)
        return x + _direction(lambda d: jax.jvp(lambda z: slope(z, *data), (x,), (d,))[1], slope(x, *data))

    x = jax.lax.fori_loop(0, _NEWTON, step, x)
    return x, objective(x, *data)


def _problem(objective: Callable, *args, constants: tuple[float, ...] = ()) -> Problem:
    """The bridged objective's derivatives are Julia's, and the whole method becomes one kernel."""
    theirs = functools.partial(_minimize, objective)
    ours = native(functools.partial(_minimize, native(objective)))
    return Problem(ours, theirs, {JIT: theirs}, args, constants)


def _quadratic(quick: bool) -> Problem:
    size = 6 if quick else 500
    random = np.random.default_rng(0)
    root = random.standard_normal((size, size)) / np.sqrt(size)
    return _problem(
        lambda x, a, b: 0.5 * jnp.vdot(x, a @ x) - jnp.vdot(b, x),
        np.zeros(size),
        root @ root.T + np.eye(size),
        random.standard_normal(size),
    )


def _hidden_markov(quick: bool) -> Problem:
    """The likelihood of a sequence of symbols, by the forward algorithm in logarithms (Rabiner 1989)."""
    states, symbols, length = (2, 3, 6) if quick else (8, 10, 200)
    sizes = np.cumsum([states, states * states])

    def objective(theta, observed):
        first, moves, shows = jnp.split(theta, sizes)
        moves = jax.nn.log_softmax(moves.reshape(states, states), axis=1)
        shows = jax.nn.log_softmax(shows.reshape(states, symbols), axis=1)

        def step(alpha, seen):
            return logsumexp(alpha[:, None] + moves, axis=0) + shows[:, seen], None

        start = jax.nn.log_softmax(first) + shows[:, observed[0]]
        alpha, _ = jax.lax.scan(step, start, observed[1:])
        return 0.1 * jnp.vdot(theta, theta) - logsumexp(alpha)

    random = np.random.default_rng(0)
    theta = 0.1 * random.standard_normal(states + states * states + states * symbols)
    observed = random.integers(0, symbols, length).astype(np.int32)
    return _problem(objective, theta, observed, constants=(states, symbols, _NEWTON, _CONJUGATE))


def _logistic(quick: bool) -> Problem:
    samples, features = (8, 3) if quick else (5000, 100)
    random = np.random.default_rng(0)
    data = random.standard_normal((samples, features))
    truth = random.standard_normal(features) / np.sqrt(features)
    labels = (random.uniform(size=samples) < 1 / (1 + np.exp(-data @ truth))).astype(float)

    def objective(w, data, labels):
        margin = data @ w
        return jnp.mean(jnp.logaddexp(0.0, margin) - labels * margin) + 5e-4 * jnp.vdot(w, w)

    return _problem(objective, np.zeros(features), data, labels)


def _case(
    name: str, title: str, make: Callable[[bool], Problem], ratio: float = 1, limit: Limit | None = None
) -> Case:
    return Case(f"newton-{name}", title, (Requirement(JIT, ratio),), make, tolerance=1e-7, limit=limit)


CASES = (
    _case("quadratic", "truncated Newton-CG: convex quadratic of 500", _quadratic),
    _case(
        "hmm",
        "- hidden Markov model, 8 states, 200 symbols",
        _hidden_markov,
        3,
        Limit("hidden_markov.jl"),
    ),
    _case("logistic", "- logistic regression, 5000 × 100", _logistic),
)
