"""Long loops over little state, where a runtime pays for each operation rather than for its arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from ..case import Case, Limit, Problem, against_grad, gradient

_STEPS = 614


def lorenz(steps: int, dt: float) -> Callable:
    """What the place after so many steps of Euler's method is away from the origin, squared."""

    def loss(parameters, state):
        sigma, rho, beta = parameters

        def step(s, _):
            x, y, z = s
            return (
                x + dt * sigma * (y - x),
                y + dt * (x * (rho - z) - y),
                z + dt * (x * y - beta * z),
            ), None

        (x, y, z), _ = jax.lax.scan(step, tuple(state), None, length=steps)
        return x * x + y * y + z * z

    return loss


def _lorenz(quick: bool) -> Problem:
    """Lorenz, Deterministic nonperiodic flow (1963), by Euler's method.

    The trajectory spans 10 units of time, in which its error grows by about e^9 (the largest Lyapunov
    exponent is 0.906): little enough for gradients in float64 to be compared.
    """
    steps = 50 if quick else 100_000
    dt = 1e-4

    args = np.array([10.0, 28.0, 8 / 3]), np.array([1.0, 1.0, 1.0])
    return gradient(lorenz(steps, dt), args, (0, 1), (steps, dt))


def _filters(nodes: int, quick: bool) -> Problem:
    """Coupled nodes of a mean and a precision each, which an input drives: filtering on a chain."""
    nodes, steps = (min(nodes, 9), 10) if quick else (nodes, _STEPS)
    random = np.random.default_rng(0)

    def loss(parameters, inputs):
        def node(own, parent):
            volatility = jnp.exp(parameters["log_volatility"] + 0.1 * own["mean"])
            predicted = 1 / (1 / own["precision"] + volatility)
            precision = predicted + 1 / (1 + volatility)
            mean = own["mean"] + parameters["rate"] * predicted / precision * (parent - own["mean"])
            return {"mean": mean, "precision": precision / (1 + 0.5 * precision)}

        def step(carry, u):
            new, parent = {}, u
            for name, own in carry.items():
                new[name] = node(own, parent)
                parent = new[name]["mean"]
            return new, parent - u

        start = {
            f"node{i:02}": {"mean": jnp.asarray(0.1 * i / nodes), "precision": jnp.asarray(1.0 + 0.1 * i)}
            for i in range(nodes)
        }
        _, surprises = jax.lax.scan(step, start, inputs)
        return jnp.mean(surprises**2)

    parameters = {"log_volatility": np.array(-1.0), "rate": np.array(0.8)}
    return gradient(loss, (parameters, random.standard_normal(steps)), constants=(nodes,))


def _matrix_carry(quick: bool) -> Problem:
    """A rotation by exponentials of small steps, to second order: 3x3 products and nothing else."""
    steps = 10 if quick else 2000
    dt = 1e-3

    def loss(generator, target):
        def step(m, _):
            slope = generator @ m
            return m + dt * (slope + 0.5 * dt * (generator @ slope)), None

        last, _ = jax.lax.scan(step, jnp.eye(3), None, length=steps)
        return jnp.sum((last - target) ** 2)

    random = np.random.default_rng(0)
    return gradient(loss, tuple(random.standard_normal((2, 3, 3))), constants=(steps, dt))


def _case(name, title, ratio, make, limit, tolerance=1e-9) -> Case:
    return Case(name, title, against_grad(ratio), make, tolerance=tolerance, limit=Limit(limit))


CASES = (
    _case("lorenz", "Lorenz, 100 000 Euler steps", 3, _lorenz, "lorenz.jl", 1e-6),
    _case("scan-60", "scan with 60 scalar leaves, 614 steps", 20, partial(_filters, 30), "filters.jl"),
    _case("scan-4", "scan with 4 scalar leaves, 614 steps", 3, partial(_filters, 2), "filters.jl"),
    _case("matrix-carry", "3×3 matrix carry, 2000 steps", 3, _matrix_carry, "matrix_carry.jl"),
)
