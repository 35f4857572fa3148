"""jaxopt: solvers whose gradients are those of the implicit function theorem."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import jaxopt
import numpy as np
from agreement import assert_agree
from casekit import computed
from sameness import assert_same_gradient, both_executes

import pybridge as pb

RNG = np.random.default_rng(9)


@both_executes
def test_jaxopt_ridge_regression(execute, x64):
    x, y = RNG.standard_normal((12, 3)), RNG.standard_normal(12)

    def objective(w, penalty):
        return jnp.mean((x @ w - y) ** 2) + penalty * jnp.sum(w**2)

    def loss(penalty):
        solver = jaxopt.LBFGS(objective, maxiter=50, tol=1e-10)
        return jnp.sum(solver.run(jnp.zeros(3), penalty).params ** 2)

    assert_same_gradient(loss, 0.3, execute=execute)


@both_executes
def test_jaxopt_projected_gradient(execute, x64):
    target = jnp.asarray(RNG.standard_normal(4))

    def loss(scale):
        solver = jaxopt.ProjectedGradient(
            lambda w, scale: jnp.sum((w - scale * target) ** 2),
            jaxopt.projection.projection_simplex,
            tol=1e-9,
        )
        return jnp.vdot(target, solver.run(jnp.full(4, 0.25), 1.0, scale).params)

    assert_same_gradient(loss, 0.3, execute=execute)


@both_executes
def test_a_bridged_objective_inside_a_solver(execute, x64):
    """The solver is JAX's, the objective that it differentiates (and the theorem, twice) bridged."""
    x, y = RNG.standard_normal((12, 3)), RNG.standard_normal(12) > 0

    def objective(w, penalty):
        return jnp.mean(jax.nn.softplus(-jnp.where(y, 1, -1) * (x @ w))) + penalty * jnp.sum(w**2)

    def solved(objective):
        def loss(penalty):
            return jaxopt.LBFGS(objective, maxiter=30, tol=1e-10).run(jnp.zeros(3), penalty).params[0]

        return jax.value_and_grad(loss)(0.1)

    objectives = pb.bridge(objective, execute=execute), objective
    found, expected = computed([lambda f=f: solved(f) for f in objectives], [(), ()])
    assert_agree(found, expected, "hyperparameter", 1e-8)
