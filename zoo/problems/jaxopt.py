"""jaxopt: bilevel problems, by implicit differentiation and through unrolled iterations."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import jaxopt


def _data():
    random = jax.random.split(jax.random.key(3), 3)
    inputs = jax.random.normal(random[0], (60, 10))
    weights = jax.random.normal(random[1], (10,))
    labels = (inputs @ weights + 0.5 * jax.random.normal(random[2], (60,)) > 0).astype(inputs.dtype)
    return inputs, labels


def logistic_regression():
    """The validation loss of a logistic regression by L-BFGS, as a function of ten penalties."""
    inputs, labels = _data()
    (train, check), (right, wanted) = jnp.split(inputs, 2), jnp.split(labels, 2)

    def objective(weights, log_penalties):
        fit = jaxopt.objective.binary_logreg(weights, (train, right))
        return fit + 0.5 * jnp.sum(jnp.exp(log_penalties) * weights**2)

    solver = jaxopt.LBFGS(objective, maxiter=200, tol=1e-10)

    def loss(log_penalties):
        weights = solver.run(jnp.zeros(10), log_penalties).params
        return jaxopt.objective.binary_logreg(weights, (check, wanted))

    return loss, (jnp.full(10, -3.0),)


def lasso():
    """The validation error of a lasso by proximal gradients, as a function of its penalty and targets."""
    inputs, labels = _data()

    solver = jaxopt.ProximalGradient(
        jaxopt.objective.least_squares, jaxopt.prox.prox_lasso, maxiter=500, tol=1e-12
    )

    def loss(params):
        run = solver.run(jnp.zeros(10), hyperparams_prox=params["penalty"], data=(inputs, params["targets"]))
        return jnp.mean((inputs @ run.params - labels) ** 2)

    return loss, ({"penalty": jnp.array(0.05), "targets": labels},)


def unrolled():
    """A hundred iterations of gradient descent, differentiated through."""
    inputs, labels = _data()

    def objective(weights, penalty):
        return jaxopt.objective.binary_logreg(weights, (inputs, labels)) + 0.5 * penalty * jnp.sum(weights**2)

    solver = jaxopt.GradientDescent(
        objective, stepsize=0.5, maxiter=100, tol=0.0, acceleration=False, implicit_diff=False, unroll=True
    )

    def loss(penalty):
        return jnp.sum(solver.run(jnp.zeros(10), penalty).params ** 2)

    return loss, (jnp.array(0.1),)
