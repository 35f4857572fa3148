"""Functions of JAX that are primitives of the new kind in some versions: against JAX and differences."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agreement import assert_agree
from casekit import computed
from jax import flatten_util, lax

import pybridge as pb
from pybridge.frontend.adapter import internals

RNG = np.random.default_rng(73)
X = jnp.asarray(np.sort(RNG.uniform(0.2, 1.8, (4,))))
V = jnp.asarray(RNG.uniform(-1, 1, (4,)))


def interpolated(x):
    return jnp.interp(x, jnp.array([0.0, 0.5, 1.1, 2.0]), jnp.cumsum(x**2)) * x


def searched(x):
    return x[jnp.searchsorted(x, 0.9 * x, side="right", method="sort") % 4] ** 2


def of_nonzeros(x):
    (places,) = jnp.nonzero(x > 0.7, size=3, fill_value=0)
    return jnp.sin(x)[places] * x[:3]


def scaled(x):
    return jnp.ldexp(jnp.sin(x), jnp.array([3, -2, 0, 4])) * x + jnp.ldexp(x, -1) ** 2


def mantissas(x):
    mantissa, exponent = jnp.frexp(8 * x)
    return mantissa**2 * exponent


def root(x):
    """y^3 + x y = 2 by Newton's steps."""

    def f(y):
        return y**3 + x * y - 2

    def solve(f, guess):
        return lax.fori_loop(0, 20, lambda _, y: y - f(y) / (3 * y**2 + x), guess)

    return lax.custom_root(f, jnp.ones_like(x), solve, lambda g, y: y / g(jnp.ones_like(y)))


def coupled_root(x):
    """A tree of unknowns, by a solver that also says how far it came."""
    matrix = 3 * jnp.eye(4) + jnp.outer(x, x)

    def f(y):
        return {"a": matrix @ y["a"] - jnp.cos(y["b"]), "b": y["b"] - 0.1 * y["a"] * x}

    def solve(f, guess):
        def step(y, _):
            error = f(y)
            return {"a": y["a"] - jnp.linalg.solve(matrix, error["a"]), "b": y["b"] - error["b"]}, None

        found, _ = lax.scan(step, guess, None, length=40)
        return found, jnp.sum(f(found)["a"])

    def tangent_solve(g, y):
        flat, unravel = flatten_util.ravel_pytree(y)
        jacobian = jax.jacobian(lambda v: flatten_util.ravel_pytree(g(unravel(v)))[0])(flat)
        return unravel(jnp.linalg.solve(jacobian, flat))

    guess = {"a": jnp.ones(4), "b": jnp.zeros(4)}
    return lax.custom_root(f, guess, solve, tangent_solve, has_aux=True)[0]


def root_in_a_loop(x):
    return lax.scan(lambda c, k: (root(c * k), c.sum()), x, jnp.array([0.5, 1.0, 1.5]))


def einstein(x):
    from jax._src.numpy import hijax  # no public function makes it yet

    m = jnp.outer(x, jnp.sin(x))
    return hijax.einsum("ij,jk,k->i", m, m.T, x)


FUNCTIONS = [interpolated, searched, of_nonzeros, scaled, mantissas, root, coupled_root, root_in_a_loop]
if internals.Einsum is not None:
    FUNCTIONS.append(einstein)


def loss(f):
    return lambda x: sum(jnp.sum(jnp.sin(y)) for y in jax.tree.leaves(f(x)))


def differences(f, x, v, step=1e-4):
    """The directional derivative, of fourth order in the step."""

    def at(k):
        return f(x + k * step * v)

    return (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * step)


@pytest.mark.parametrize("f", FUNCTIONS)
def test_value_and_gradient(f, x64):
    x, v = X.astype(jnp.float64), V.astype(jnp.float64)

    def both(f):
        return lambda x: (f(x), jax.grad(loss(f))(x))

    ways = {execute: both(pb.bridge(f, execute=execute)) for execute in ("julia", "xla")}
    in_jax = [both(f), lambda x: differences(loss(f), x, v)]
    *found, expected, slope = computed([*ways.values(), *in_jax], [(x,)] * 4)
    for execute, (value, gradient) in zip(ways, found, strict=True):
        assert_agree(value, expected[0], f"value, {execute}", 1e-9)
        assert_agree(gradient, expected[1], f"gradient, {execute}", 1e-9)
        assert_agree(jnp.vdot(gradient, v), slope, f"differences, {execute}", 1e-7)


@pytest.mark.parametrize("f", FUNCTIONS)
def test_other_transformations(f, x64):
    x, v = X.astype(jnp.float64), V.astype(jnp.float64)
    batch = jnp.stack([x, x[::-1] / 2])

    def done(f):
        return lambda x, v: {
            "jvp": jax.jvp(f, (x,), (v,)),
            "vmap": jax.vmap(f)(batch),
            "vmap of grad": jax.vmap(jax.grad(loss(f)))(batch),
        }

    g = pb.bridge(f, execute="xla")  # the same Programs, and nothing to compile
    in_jax = [done(f), lambda x, v: differences(jax.grad(loss(f)), x, v)]
    by_x = jax.grad(lambda x, v: jnp.vdot(jax.grad(loss(g))(x), v))
    found, hvp, expected, wanted_hvp = computed([done(g), by_x, *in_jax], [(x, v)] * 4)
    for name, wanted in expected.items():
        assert_agree(found[name], wanted, name, 1e-9)
    assert_agree(hvp, wanted_hvp, "second order", 1e-6)


@pytest.mark.parametrize("execute", ["julia", "xla"])
def test_scaling_by_powers_of_two_is_exact(execute):
    """Also where the power alone is out of range; what is subnormal is zero, as in JAX."""
    if jax.__version_info__ < (0, 12):
        pytest.skip("until JAX 0.12 ldexp is other operations, with overflow in their derivatives")
    x = jnp.array([1.5, -1.5, 1e-30, -1e-30, 1e38, 3e-39, 0.0, -0.0, jnp.inf, -jnp.inf, jnp.nan], jnp.float32)
    exponents = jnp.array([0, 1, -1, 60, 127, 128, -126, -149, 200, -200, 253, -253, 300, 10**9, -(10**9)])
    x, n = map(jnp.ravel, jnp.meshgrid(x, exponents))
    g = pb.bridge(jnp.ldexp, execute=execute)
    np.testing.assert_array_equal(g(x, n), jnp.ldexp(x, n))
    np.testing.assert_array_equal(jnp.signbit(g(x, n)), jnp.signbit(jnp.ldexp(x, n)))
    slopes = (jax.vjp(lambda x, f=f: f(x, n), x)[1](jnp.ones_like(x))[0] for f in (g, jnp.ldexp))
    np.testing.assert_array_equal(*slopes)
    for n in (jnp.int8(-100), jnp.uint8(200), jnp.int16(130), jnp.uint32(7)):
        np.testing.assert_array_equal(g(x, n), jnp.ldexp(x, n))
