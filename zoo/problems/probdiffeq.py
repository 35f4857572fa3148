"""probdiffeq: probabilistic solvers, whose steps are Gaussian updates with QR decompositions."""

from __future__ import annotations

import jax.numpy as jnp
from probdiffeq import ivpsolve, probdiffeq


def fixed_grid():
    """The logistic equation by a twice integrated Wiener process, on a grid of 60 steps."""
    grid = jnp.linspace(0.0, 4.0, 61)
    truth = 1 / (1 + 9 * jnp.exp(-1.5 * grid[-1]))

    def loss(params):
        ode = probdiffeq.ode(lambda u, /, *, t: params["rate"] * u * (1 - u / params["room"]))
        start = params["start"]
        expand = probdiffeq.jetexpand_ode_unroll(num=2)
        coefficients, _ = expand(ode, (start,), t=0.0)
        model = probdiffeq.state_space_model_isotropic()
        prior = model.prior_wiener_integrated(coefficients)
        # The gradient of `solver_mle`'s standard deviation is NaN.
        solver = probdiffeq.solver_dynamic(
            strategy=probdiffeq.strategy_filter(), constraint=model.constraint_ode_ts0(ode)
        )
        solution = ivpsolve.solve_fixed_grid(solver=solver)(prior, grid=grid)
        return jnp.sum((solution.u.mean[0][-1] - truth) ** 2) + jnp.sum(solution.u.std[0][-1])

    return loss, ({"rate": jnp.array(1.4), "room": jnp.array(1.1), "start": jnp.array([0.12, 0.3])},)
