"""Long loops over little state, where a runtime pays for each operation rather than for its arithmetic."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from ..case import Case, Problem, against_grad, gradient

_STEPS = 614


def _lorenz(quick: bool) -> Problem:
    """Lorenz, Deterministic nonperiodic flow (1963), by Euler's method.

    The trajectory spans 10 units of time, in which its error grows by about e^9 (the largest Lyapunov
    exponent is 0.906): little enough for gradients in float64 to be compared.
    """
    steps = 50 if quick else 100_000
    dt = 1e-4

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

    return gradient(loss, (np.array([10.0, 28.0, 8 / 3]), np.array([1.0, 1.0, 1.0])), (0, 1))


def _sixty_leaves(quick: bool) -> Problem:
    """Thirty coupled nodes of a mean and a precision each, which an input drives: filtering on a chain."""
    nodes, steps = (3, 10) if quick else (30, _STEPS)
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
    return gradient(loss, (parameters, random.standard_normal(steps)))


def _four_leaves(quick: bool) -> Problem:
    """FitzHugh and Nagumo's neuron (1961, 1962) with two filters of what drives it."""
    steps = 10 if quick else _STEPS
    dt = 0.05

    def loss(parameters, inputs):
        a, b, tau, gain = parameters

        def step(carry, u):
            v, w, fast, slow = carry
            fast = fast + dt * (u - fast) / 0.2
            slow = slow + dt * (fast - slow)
            dv = v - v**3 / 3 - w + gain * jnp.tanh(slow)
            dw = (v + a - b * w) / tau
            return (v + dt * dv, w + dt * dw, fast, slow), v

        start = tuple(jnp.asarray(s) for s in (-1.0, 0.5, 0.0, 0.0))
        _, voltage = jax.lax.scan(step, start, inputs)
        return jnp.mean(voltage**2)

    inputs = np.random.default_rng(0).standard_normal(steps)
    return gradient(loss, (np.array([0.7, 0.8, 12.5, 2.0]), inputs))


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
    return gradient(loss, tuple(random.standard_normal((2, 3, 3))))


def _case(name, title, ratio, make) -> Case:
    return Case(name, title, against_grad(ratio), make)


CASES = (
    Case("lorenz", "Lorenz, 100 000 Euler steps", against_grad(1.3), _lorenz, tolerance=1e-6),
    _case("scan-60", "scan with 60 scalar leaves, 614 steps", 40, _sixty_leaves),
    _case("scan-4", "scan with 4 scalar leaves, 614 steps", 10, _four_leaves),
    _case("matrix-carry", "3×3 matrix carry, 2000 steps", 2, _matrix_carry),
)
