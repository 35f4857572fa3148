"""lineax: structured and iterative linear solves."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import lineax as lx


def tridiagonal():
    """Heat in a rod of varying conductivity, a hundred implicit steps with a tridiagonal operator each."""
    heat = jnp.exp(-100 * (jnp.linspace(0.0, 1.0, 64) - 0.3) ** 2)

    def loss(log_conductivity):
        flow = 0.4 * jnp.exp(log_conductivity)
        diagonal = 1 + jnp.pad(flow, (1, 0)) + jnp.pad(flow, (0, 1))
        operator = lx.TridiagonalLinearOperator(diagonal, -flow, -flow)

        def step(u, _):
            return lx.linear_solve(operator, u, lx.Tridiagonal()).value, None

        final, _ = jax.lax.scan(step, heat, length=100)
        return jnp.sum(jnp.linspace(0.0, 1.0, 64) * final**2)

    return loss, (0.1 * jnp.sin(jnp.arange(63.0)),)


def conjugate_gradients():
    """A positive definite operator given as a function, by conjugate gradients."""
    points = jnp.linspace(-1.0, 1.0, 50)
    kernel = jnp.exp(-8 * (points[:, None] - points[None, :]) ** 2)

    def loss(params):
        def apply(v):
            return jnp.exp(params["noise"]) * v + params["scale"] * (kernel @ v)

        operator = lx.FunctionLinearOperator(
            apply, jax.eval_shape(lambda: points), tags=lx.positive_semidefinite_tag
        )
        solution = lx.linear_solve(operator, jnp.sin(3 * points), lx.CG(rtol=1e-10, atol=1e-10))
        return jnp.vdot(points, solution.value)

    return loss, ({"noise": jnp.array(-1.0), "scale": jnp.array(1.5)},)


def least_squares():
    """Ridge regression by QR of a tall matrix, and its error on other data, as a function of the features."""
    first, second, third = jax.random.split(jax.random.key(2), 3)
    features = jax.random.normal(first, (80, 12))
    targets = jnp.sin(features[:, 0]) + 0.1 * jax.random.normal(second, (80,))
    others = jax.random.normal(third, (40, 12))

    def loss(features):
        tall = jnp.concatenate([features, 0.3 * jnp.eye(12)])
        solution = lx.linear_solve(
            lx.MatrixLinearOperator(tall), jnp.concatenate([targets, jnp.zeros(12)]), lx.QR()
        )
        return jnp.mean((others @ solution.value - jnp.sin(others[:, 0])) ** 2)

    return loss, (features,)
