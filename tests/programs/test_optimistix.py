"""optimistix: iterations to a tolerance, differentiated implicitly by solves of lineax."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import lineax as lx
import optimistix as optx
import pytest
from bound_programs import primitives_in
from sameness import assert_same_gradient, both_executes

import pybridge as pb


def linear(a):
    operator = lx.MatrixLinearOperator(jnp.array([[2.0, 1.0], [1.0, 3.0]]) * a)
    return jnp.sum(lx.linear_solve(operator, jnp.array([jnp.sin(a), 2.0]), throw=False).value)


def fixed_point(a):
    solver = optx.FixedPointIteration(1e-8, 1e-8)
    return optx.fixed_point(lambda y, a: jnp.cos(a * y), solver, jnp.array(0.5), a, throw=False).value


def newton(a):
    solver = optx.Newton(1e-8, 1e-8)
    y = optx.root_find(lambda y, a: y - jnp.tanh(a * y + 1), solver, jnp.zeros(3), a, throw=False).value
    return jnp.sum(jnp.sin(y))


def bfgs(a):
    solver = optx.BFGS(1e-8, 1e-8)
    loss = lambda y, a: jnp.sum((y - a) ** 2) + jnp.sum(y**4)  # noqa: E731
    return jnp.sum(optx.minimise(loss, solver, jnp.ones(2), a, throw=False).value)


def least_squares(a):
    """By a QR factorization whose Q is applied as reflections."""
    solver = optx.LevenbergMarquardt(1e-8, 1e-8)
    residual = lambda y, a: jnp.stack([y[0] - a, y[0] * y[1] - jnp.sin(a), y[1] - 1])  # noqa: E731
    return jnp.sum(optx.least_squares(residual, solver, jnp.ones(2), a, throw=False).value)


@both_executes
@pytest.mark.parametrize("f", [linear, fixed_point, newton, bfgs, least_squares])
def test_gradients(f, execute, x64):
    assert_same_gradient(f, 0.7, execute=execute)


def test_iterations_are_parts_of_a_program(x64):
    found = primitives_in(jax.make_jaxpr(pb.bridge(newton))(0.7).jaxpr)
    assert "julia_call" in found and not {"linear_solve", "while", "unvmap_any"} & found


def test_an_iteration_that_does_not_converge(x64):
    def root(a):
        solver = optx.Newton(1e-8, 1e-8)
        return optx.root_find(lambda y, a: y**2 + a, solver, jnp.array(1.0), a, max_steps=16).value

    for f in (root, pb.bridge(root), jax.jit(jax.grad(pb.bridge(root)))):
        with pytest.raises(Exception, match="The maximum number of steps was reached"):
            f(1.0)
    assert_same_gradient(root, -2.0, execute="julia")
