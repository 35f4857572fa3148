"""What Programs lack is bound by JAX between them, with the derivative that it has there, wherever it stands.

Primitives that are unknown, parameters of known ones, dtypes, and calls: see `partition/needs_jax.py`.
"""

from __future__ import annotations

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agreement import assert_agree
from casekit import QUICK
from covering import covering
from jax import lax
from jax.experimental import sparse, xla_metadata

import pybridge as pb

RNG = np.random.default_rng(45)
X = jnp.asarray(RNG.uniform(0.5, 1.5, (3, 3)) + 2 * np.eye(3), jnp.float32)
DX = jnp.asarray(RNG.uniform(-1, 1, (3, 3)), jnp.float32)
MODES = ["julia", "auto", "xla"]


# Each takes and returns a square matrix.


def svd_by_an_algorithm(x):
    u, s, v = lax.linalg.svd(x, full_matrices=False, algorithm=lax.linalg.SvdAlgorithm.QR)
    return u * jnp.sin(s) @ v


def perturbed_tridiagonal_solve(x):
    d = jnp.diagonal(x)
    options = {} if jax.__version_info__ < (0, 11) else {"perturb_singular": True}
    return lax.linalg.tridiagonal_solve(0.1 * d, d, 0.1 * d, jnp.cos(x), **options)


def with_metadata(x):
    if hasattr(xla_metadata, "xla_metadata_call"):
        x = xla_metadata.xla_metadata_call(lambda x: jnp.sin(x) * x, name="f")(x)
    return jnp.cos(xla_metadata.set_xla_metadata(x, name="x")) * x


def sparse_product(x):
    scaled = sparse.BCOO((jnp.cos(x).ravel()[:4], np.array([[0, 0], [0, 1], [1, 1], [2, 2]])), shape=(3, 3))
    return sparse.sparsify(lambda a, b: (a @ b) * 2)(scaled, x)


def float8(x):
    return jnp.sin(x).astype(jnp.float8_e4m3fn).astype(jnp.float32) * x


def int4(x):
    return jnp.round(3 * jnp.sin(x)).astype(jnp.int4).astype(jnp.float32) * x


FUNCTIONS = [svd_by_an_algorithm, perturbed_tridiagonal_solve, with_metadata, sparse_product, float8, int4]


# Where they stand.


def alone(f):
    return lambda x: jnp.cos(f(jnp.sin(x) + x))


def in_a_scan(f):
    return lambda x: lax.scan(lambda c, k: (jnp.sin(f(c)) + k * x, c[0]), x, jnp.arange(2.0))


def in_a_branch(f):
    return lambda x: lax.cond(x[0, 0] > 0, lambda: f(jnp.sin(x) + x), lambda: 2 * x)


def in_a_while_loop(f):
    def step(state):
        n, x = state
        return n + 1, jnp.cos(f(x))

    return lambda x: lax.while_loop(lambda s: s[0] < 2, step, (0, x))[1]


def in_a_batch(f):
    return lambda x: jax.vmap(f)(jnp.stack([x, jnp.sin(x) + x]))


def in_calls(f):
    return lambda x: jax.jit(jax.checkpoint(lambda x: jnp.sin(f(x)) * x))(x)


def in_a_function_with_a_rule(f):
    g = jax.custom_jvp(f)
    g.defjvp(lambda primals, tangents: (g(*primals), 5 * tangents[0]))
    return lambda x: jnp.sin(g(jnp.cos(x) + x))


def in_a_rule(f):
    g = jax.custom_vjp(jnp.sin)
    g.defvjp(lambda x: (jnp.sin(x), x), lambda x, ct: (ct * f(x),))
    return lambda x: g(jnp.cos(x) + x)


def total(f):
    return lambda x: sum(jnp.sum(y**2) for y in jax.tree.leaves(f(x)))


FORWARD = {in_a_while_loop}
REVERSE = {in_a_rule}


def everything(h, place):
    """Value, gradient and JVP, as far as JAX has them, also of a batch."""
    of_one = [h]
    if place not in FORWARD:
        of_one.append(jax.grad(total(h)))
    if place not in REVERSE:
        of_one.append(lambda x: jax.jvp(h, (x,), (DX,))[1])
    return [k(X) for k in of_one] + [jax.vmap(k)(jnp.stack([X, X + 0.1])) for k in of_one]


def compared(f, place, execute):
    h = place(f)
    ours, theirs = (
        jax.jit(lambda h=h: everything(h, place), compiler_options=QUICK)()
        for h in (pb.bridge(h, execute=execute), h)
    )
    assert_agree(ours, theirs, f"{f.__name__} {place.__name__}", 1e-4)


@pytest.mark.parametrize(("f", "execute"), covering(FUNCTIONS, MODES, least=1))
def test_alone(f, execute):
    compared(f, alone, execute)


PLACES = [in_a_scan, in_a_branch, in_a_while_loop, in_a_batch, in_calls]
PLACES += [in_a_function_with_a_rule, in_a_rule]


@pytest.mark.parametrize("place", PLACES)
def test_wherever_it_stands(place):
    compared(perturbed_tridiagonal_solve if place is in_a_rule else sparse_product, place, "julia")


def test_without_jit():
    g = pb.bridge(alone(sparse_product))
    assert_agree(g(X), alone(sparse_product)(X), "value")
    assert_agree(jax.grad(total(g))(X), jax.grad(total(alone(sparse_product)))(X), "gradient")


def test_arguments_and_results_of_other_dtypes():
    def f(x, n):
        return x.astype(jnp.float32) * 2, x, n

    args = X.astype(jnp.float8_e5m2), jnp.arange(-3, 3).astype(jnp.int4)
    ours, theirs = pb.bridge(f)(*args), f(*args)
    assert [y.dtype for y in ours] == [y.dtype for y in theirs]
    assert all(np.array_equal(a, b) for a, b in zip(ours, theirs, strict=True))


@pytest.mark.parametrize("mode", MODES)
def test_computations_of_elements_stay_in_their_operation(mode):
    """Of numbers and their places: XLA ends the process where a reduction's computation calls a kernel."""

    def smaller(a, b):
        first = (a[0] < b[0]) | ((a[0] == b[0]) & (a[1] < b[1]))
        return jnp.where(first, a[0], b[0]), jnp.where(first, a[1] + 1, b[1])

    def f(x, places):
        start = (jnp.float8_e4m3fn(5), jnp.int32(99))
        return lax.reduce((x, places), start, smaller, (0,))

    args = X.astype(jnp.float8_e4m3fn), jnp.arange(9, dtype=jnp.int32).reshape(3, 3)
    ours, theirs = pb.bridge(f, execute=mode)(*args), jax.jit(f)(*args)
    assert all(np.array_equal(a, b) for a, b in zip(ours, theirs, strict=True))


def test_a_solver_within_a_root():
    """JAX cannot transpose GMRES's derivative by what its matrix depends on."""

    def root(a):
        def residual(x):
            return x**3 + x - a

        def solve(f, x):
            return lax.fori_loop(0, 20, lambda _, x: x - f(x) / (3 * x**2 + 1), x)

        def tangent_solve(g, y):
            return jax.scipy.sparse.linalg.gmres(g, y)[0]

        return lax.custom_root(residual, a, solve, tangent_solve)

    a, da = X[0], DX[0]
    g = pb.bridge(root)
    assert_agree(jax.jvp(g, (a,), (da,)), jax.jvp(root, (a,), (da,)), "jvp", 1e-5)
    batch = jnp.stack([a, a + 0.1])
    assert_agree(jax.vmap(g)(batch), jax.vmap(root)(batch), "batch", 1e-5)


@pytest.mark.parametrize("mode", ["julia", "auto"])
def test_a_forward_rule_is_a_program_where_the_backward_rule_is_not(mode, capsys):
    @jax.custom_vjp
    def root(x):
        return lax.fori_loop(0, 8, lambda _, y: 0.5 * (y + x / y), x)

    def backward(residuals, ct):
        return (ct / (2 * residuals) * (1 + 0 * int4(residuals)),)

    root.defvjp(lambda x: (root(x),) * 2, backward)

    def f(x):
        return jnp.sum(jnp.sin(root(x * x + 1)))

    g = pb.bridge(f, execute=mode, explain=True)
    assert_agree(jax.jit(jax.grad(g))(X), jax.grad(f)(X), "gradient", 1e-5)
    said = capsys.readouterr().err
    assert re.search("f runs as XLA operations, differentiated by JAX: .*int4", said)
    assert "rule runs as native kernel" in said
    second = (jax.grad(lambda x, f=f: jnp.vdot(jax.grad(f)(x), DX))(X) for f in (g, f))
    assert_agree(*second, "second derivative", 1e-4)
    batch = jnp.stack([X, X + 1])
    assert_agree(jax.vmap(jax.grad(g))(batch), jax.vmap(jax.grad(f))(batch), "batch", 1e-5)


def test_what_is_the_same_in_each_trip_of_a_scan_is_kept_once():
    def f(w, x):
        def step(c, _):
            product = jnp.exp(w).astype(jnp.float8_e4m3fn) * jnp.sin(c).astype(jnp.float8_e4m3fn)
            return jnp.cos(product.astype(jnp.float32)), None

        return jnp.sum(lax.scan(step, x, None, length=7)[0])

    def stacks(f):
        loop = next(e for e in jax.make_jaxpr(jax.grad(f))(X, DX).eqns if e.primitive.name == "scan")
        return len([v for v in loop.outvars if v.aval.shape[:1] == (7,)])

    assert stacks(pb.bridge(f)) <= stacks(f)
    assert_agree(jax.grad(pb.bridge(f), (0, 1))(X, DX), jax.grad(f, (0, 1))(X, DX), "gradients")


@pytest.mark.parametrize(
    "f, what",
    [
        (svd_by_an_algorithm, r"svd: svd with algorithm=\S+ at \S*test_left_to_jax.py:\d+"),
        (sparse_product, r"bcoo_dot_general: bcoo_dot_general at \S*test_left_to_jax.py:\d+"),
        (int4, r"convert_element_type: a value of type int4 .*at \S*test_left_to_jax.py:\d+"),
        (in_a_scan(int4), r"scan: a value of type int4"),
    ],
    ids=["parameter", "primitive", "dtype", "loop"],
)
def test_explain_says_what_is_left_to_jax(f, what, capsys):
    pb.bridge(f, explain=True)(X)
    assert re.search(rf"pybridge: \w+: JAX binds {what}", capsys.readouterr().err)


def test_what_has_effects_is_still_refused():
    def f(x):
        jax.experimental.io_callback(lambda _: None, None, x)
        return int4(x)

    with pytest.raises(pb.SideEffectError, match="io_callback"):
        pb.bridge(f)(X)


def test_a_program_of_it_is_refused():
    with pytest.raises(pb.UnsupportedPrimitive, match=r"pybridge\.bridge takes the function as it is"):
        pb.trace(svd_by_an_algorithm)(X)
