"""lineax's solves are parts of Programs, with the package's own derivative, natively."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import lineax as lx
import numpy as np
import pytest
from agreement import assert_agree
from bound_programs import primitives_in
from jax import lax

import pybridge as pb

RNG = np.random.default_rng(0)
SQUARE = RNG.standard_normal((5, 5)) + 5 * np.eye(5)
POSITIVE = SQUARE @ SQUARE.T
TALL = RNG.standard_normal((7, 5))
RIGHT, LONG_RIGHT = RNG.standard_normal(5), RNG.standard_normal(7)


def matrix(a):
    return lx.MatrixLinearOperator(a)


def positive(a):
    return lx.MatrixLinearOperator((a + a.T) / 2, lx.positive_semidefinite_tag)


def tridiagonal(a):
    return lx.TridiagonalLinearOperator(jnp.diag(a), jnp.diag(a, -1), jnp.diag(a, 1))


def diagonal(a):
    return lx.DiagonalLinearOperator(jnp.diag(a))


def function(a):
    return lx.FunctionLinearOperator(lambda x: jnp.tanh(a) @ x + 2 * x, jax.ShapeDtypeStruct((5,), a.dtype))


SOLVES = {
    "LU": (matrix, lx.LU(), SQUARE, RIGHT),
    "automatic": (matrix, lx.AutoLinearSolver(well_posed=True), SQUARE, RIGHT),
    "QR": (matrix, lx.QR(), TALL, LONG_RIGHT),
    "SVD": (matrix, lx.SVD(), TALL, LONG_RIGHT),
    "Cholesky": (positive, lx.Cholesky(), POSITIVE, RIGHT),
    "CG": (positive, lx.CG(rtol=1e-13, atol=1e-13), POSITIVE, RIGHT),
    "GMRES": (matrix, lx.GMRES(rtol=1e-12, atol=1e-12), SQUARE, RIGHT),
    "tridiagonal": (tridiagonal, lx.Tridiagonal(), SQUARE, RIGHT),
    "diagonal": (diagonal, lx.Diagonal(), SQUARE, RIGHT),
    "a function": (function, lx.LU(), SQUARE, RIGHT),
}


def loss(name, throw=True):
    operator, solver, _, _ = SOLVES[name]

    def of(a, b):
        x = lx.linear_solve(operator(a), b, solver, throw=throw).value
        return jnp.sum(jnp.sin(x) * x)

    return of


@pytest.mark.parametrize("name", SOLVES)
def test_values_and_derivatives(name, x64):
    f, (_, solver, a, b) = loss(name), SOLVES[name]
    g = pb.bridge(f)
    tolerance = 1e-7 if isinstance(solver, lx.CG | lx.GMRES) else 1e-10
    directions = (np.cos(a), np.sin(b))

    def along(f, *xs):
        return jax.jvp(f, xs, directions)

    assert_agree(g(a, b), f(a, b), "value", tolerance)
    assert_agree(along(g, a, b), along(f, a, b), "jvp", tolerance)
    ours, theirs = (jax.grad(h, (0, 1)) for h in (g, f))
    assert_agree(jax.jit(ours)(a, b), theirs(a, b), "gradient", tolerance)
    assert_agree(jax.jit(along, static_argnums=0)(ours, a, b), along(theirs, a, b), "hvp", 100 * tolerance)


@pytest.mark.parametrize("name", ["LU", "QR", "CG", "diagonal"])
def test_batches(name, x64):
    f, (_, solver, a, b) = loss(name), SOLVES[name]
    tolerance = 1e-7 if isinstance(solver, lx.CG) else 1e-10
    some, rights = np.stack([a, 1.5 * a, a + 0.1 * np.cos(a)]), np.stack([b, 2 * b, -b])
    ours, theirs = (jax.vmap(jax.value_and_grad(h, (0, 1))) for h in (pb.bridge(f), f))
    assert_agree(jax.jit(ours)(some, rights), theirs(some, rights), "batch of gradients", tolerance)
    inside = pb.bridge(lambda a, b: jnp.sum(jax.vmap(f, (None, 0))(a, b)))
    of_rights = lambda a, b: jnp.sum(jax.vmap(f, (None, 0))(a, b))  # noqa: E731
    assert_agree(
        jax.grad(inside, (0, 1))(a, rights),
        jax.grad(of_rights, (0, 1))(a, rights),
        "a batch inside",
        tolerance,
    )


def test_one_program(x64):
    _, _, a, b = SOLVES["LU"]
    eqns = jax.make_jaxpr(jax.grad(pb.bridge(loss("LU", throw=False)), (0, 1)))(a, b).jaxpr.eqns
    assert "linear_solve" not in primitives_in(jax.make_jaxpr(pb.bridge(loss("LU")))(a, b).jaxpr)
    assert sum(eqn.primitive.name.startswith("julia") for eqn in eqns) == 1


def test_in_a_loop(x64):
    """A step of an implicit method each trip."""

    def f(a, b):
        def trip(x, t):
            x = lx.linear_solve(matrix(a + t * jnp.diag(jnp.cos(x))), x + b, lx.LU()).value
            return x, jnp.sum(x**2)

        return jnp.sum(lax.scan(trip, b, jnp.arange(3.0))[1])

    _, _, a, b = SOLVES["LU"]
    assert_agree(jax.grad(pb.bridge(f), (0, 1))(a, b), jax.grad(f, (0, 1))(a, b), "gradient")


@pytest.mark.parametrize("run", [lambda f: f, jax.jit, lambda f: jax.jit(jax.grad(f))])
def test_a_singular_matrix(run, x64):
    a, b = np.zeros((5, 5)), RIGHT
    with pytest.raises(Exception, match="linear solver returned non-finite"):
        run(loss("LU"))(a, b)
    with pytest.raises(Exception, match="linear solver returned non-finite"):
        run(pb.bridge(loss("LU")))(a, b)


def test_a_singular_matrix_within_a_users_rule(x64):
    """Where a check cannot be deferred, the solve is JAX's."""

    @jax.custom_jvp
    def solved(a, b):
        return loss("LU")(a, b)

    @solved.defjvp
    def _(primals, tangents):
        return solved(*primals), jnp.sum(tangents[1])

    f = pb.bridge(lambda a, b: jnp.cos(solved(a, b)))
    _, _, a, b = SOLVES["LU"]
    assert_agree(jax.jit(jax.grad(f, 1))(a, b), -jnp.sin(loss("LU")(a, b)) * jnp.ones(5), "gradient")
    with pytest.raises(Exception, match="linear solver returned non-finite"):
        jax.jit(f)(0 * a, b)


def test_no_error_where_none_is_wanted(x64):
    a, b = np.zeros((5, 5)), RIGHT
    f = loss("LU", throw=False)
    assert not np.isfinite(f(a, b)) and not np.isfinite(pb.bridge(f)(a, b))


def test_an_error_of_the_derivative_is_nan(x64):
    """JAX raises it; a Program has nothing that could."""
    a, b = np.zeros((5, 5)), RIGHT
    derivative = jax.grad(pb.bridge(loss("LU", throw=False)), 1)(a, b)
    assert np.isnan(derivative).all()


def test_rules_of_packages_can_be_kept(x64):
    _, _, a, b = SOLVES["LU"]
    kept = pb.bridge(loss("LU"), package_rules=True)
    assert "linear_solve" in primitives_in(jax.make_jaxpr(kept)(a, b).jaxpr)
    assert_agree(jax.grad(kept)(a, b), jax.grad(loss("LU"))(a, b), "gradient")
