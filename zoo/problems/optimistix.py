"""optimistix: losses through the solution of an inner problem, differentiated implicitly."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import optimistix as optx


def boundary_value():
    """A nonlinear boundary value problem on 40 points, solved by Newton's method."""
    points = jnp.linspace(0.0, 1.0, 42)[1:-1]
    spacing = points[1] - points[0]

    def residual(u, args):
        strength, source = args
        padded = jnp.pad(u, 1)
        curvature = (padded[2:] - 2 * u + padded[:-2]) / spacing**2
        return curvature - strength * jnp.sinh(u) + source

    def loss(params):
        solution = optx.root_find(
            residual,
            optx.Newton(rtol=1e-10, atol=1e-10),
            jnp.zeros(40),
            (params["strength"], params["source"]),
        )
        return jnp.sum((solution.value - points * (1 - points)) ** 2)

    return loss, ({"strength": jnp.array(2.0), "source": 5 * jnp.sin(jnp.pi * points)},)


def curve_fit():
    """The least squares fit of a decaying oscillation, as a function of its data."""
    times = jnp.linspace(0.0, 4.0, 60)

    def model(params):
        return params["a"] * jnp.exp(-params["k"] * times) * jnp.cos(params["w"] * times)

    truth = {"a": jnp.array(2.0), "k": jnp.array(0.5), "w": jnp.array(3.0)}
    data = model(truth) + 0.05 * jax.random.normal(jax.random.key(0), times.shape)

    def loss(data):
        fit = optx.least_squares(
            lambda params, data: model(params) - data,
            optx.LevenbergMarquardt(rtol=1e-10, atol=1e-10),
            jax.tree.map(lambda x: 0.9 * x, truth),
            args=data,
        )
        return fit.value["k"] ** 2 + fit.value["w"]

    return loss, (data,)


def minimise():
    """The minimum of a regularised Rosenbrock function by BFGS, as a function of the regularisation."""

    def objective(x, weights):
        return jnp.sum((1 - x[:-1]) ** 2 + 10 * (x[1:] - x[:-1] ** 2) ** 2) + jnp.sum(weights * x**2)

    def loss(weights):
        solution = optx.minimise(
            objective, optx.BFGS(rtol=1e-9, atol=1e-9), jnp.zeros(8), weights, max_steps=512
        )
        return jnp.sum(solution.value**3)

    return loss, (jnp.linspace(0.1, 0.8, 8),)
