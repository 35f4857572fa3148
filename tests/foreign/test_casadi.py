"""Functions of CasADi under JAX's transformations, and compared with other engines."""

from __future__ import annotations

import functools

import casadi
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agreement import assert_agree
from transformed import check

import pybridge as pb

pytestmark = pytest.mark.usefixtures("x64")


def _pendulum(steps=3):
    """The state after some steps of Runge and Kutta, and the energy."""
    state, p = casadi.MX.sym("state", 2), casadi.MX.sym("p", 3)

    def force(u):
        return casadi.vertcat(u[1], -p[0] * casadi.sin(u[0]) - p[1] * u[1] ** 3)

    u, h = state, p[2]
    for _ in range(steps):
        middle = u + h / 2 * force(u)
        u = u + h * force(middle)
    return casadi.Function("pendulum", [state, p], [u, u[1] ** 2 / 2 - p[0] * casadi.cos(u[0])])


def pendulum(state, p, steps=3):
    def force(u):
        return jnp.stack([u[1], -p[0] * jnp.sin(u[0]) - p[1] * u[1] ** 3])

    u, h = state, p[2]
    for _ in range(steps):
        u = u + h * force(u + h / 2 * force(u))
    return u, u[1] ** 2 / 2 - p[0] * jnp.cos(u[0])


def _quadratic():
    a, x = casadi.SX.sym("a", 3, 3), casadi.SX.sym("x", 3)
    return casadi.Function("quadratic", [a, x], [casadi.mtimes([x.T, a, x]) ** 2, casadi.exp(a / 3)])


def quadratic(a, x):
    return (x @ a @ x) ** 2, jnp.exp(a / 3)


def test_derivatives_of_a_simulation():
    foreign = pb.casadi_function(_pendulum())
    check(foreign, pendulum, lambda r: (r.standard_normal(2), r.uniform(0.1, 0.6, 3)), (True, False))


def test_derivatives_of_matrices():
    foreign = pb.casadi_function(_quadratic())
    check(foreign, quadratic, lambda r: (r.standard_normal((3, 3)), r.standard_normal(3)), (False, True))


def test_batches_along_any_axis():
    rng = np.random.default_rng(0)
    a, x = rng.standard_normal((3, 3, 4)), rng.standard_normal((3, 4))
    found, expected = (jax.vmap(f, (2, 1))(a, x) for f in (pb.casadi_function(_quadratic()), quadratic))
    assert_agree(found, expected, "vmap", 1e-9)


def test_it_is_compared_as_a_candidate():
    args = np.array([0.3, -0.2]), np.array([1.0, 0.2, 0.1])
    candidates = {"casadi": pb.casadi_function(_pendulum(1))}
    once = functools.partial(pendulum, steps=1)
    result = pb.compare(once, *args, engines=["jax"], candidates=candidates, order=2, repeats=0)
    assert result.ok and len(result["casadi"].second.errors) == 3


def test_a_wrong_one_disagrees():
    x = casadi.MX.sym("x", 2)
    candidates = {"casadi": pb.casadi_function(casadi.Function("f", [x], [casadi.sin(x) + 1e-3 * x**2]))}
    result = pb.compare(jnp.sin, np.array([0.3, 0.4]), engines=["jax"], candidates=candidates, repeats=0)
    assert result["casadi"].state == "disagrees" and not result.agrees()


def test_single_precision_narrows_what_casadi_computes():
    f = pb.casadi_function(_quadratic())
    a, x = np.eye(3, dtype=np.float32), np.ones(3, np.float32)
    with jax.enable_x64(False):
        value, gradient = jax.value_and_grad(lambda x: f(a, x)[0])(x)
    assert value.dtype == gradient.dtype == np.float32 and value == 9


def test_bad_arguments():
    f = pb.casadi_function(_quadratic())
    with pytest.raises(pb.ArgumentError, match=r"quadratic takes matrices of sizes \(3, 3\), \(3, 1\), not"):
        f(np.ones((3, 3)), np.ones(4))
    with pytest.raises(pb.ArgumentError, match="takes matrices"):
        f(np.ones((3, 3)))
    with pytest.raises(pb.ArgumentError, match="not str"):
        f("a", np.ones(3))
