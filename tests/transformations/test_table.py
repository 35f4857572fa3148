"""Every transformation of JAX and many nestings of them, with kernels of Julia's and with XLA's operations.

Each row takes `b`, which is `pb.bridge` in one of its modes or the identity, and returns what is to agree.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agreement import assert_agree
from casekit import computed
from covering import covering, some
from jax import lax
from jax.custom_derivatives import SymbolicZero

import pybridge as pb

RNG = np.random.default_rng(41)
X = jnp.asarray(RNG.uniform(-1, 1, (3, 4)), jnp.float32)
A = jnp.asarray(RNG.uniform(0.5, 2, (4,)), jnp.float32)
V = jnp.asarray(RNG.uniform(-1, 1, (3, 4)), jnp.float32)
PARAMS = {"w": A, "none": None, "rest": [X, (None, jnp.float32(0.5))]}


def wave(x, a):
    return jnp.sin(a * x) ** 2 / a


def row(x, a):
    return jnp.sum(jnp.tanh(x * a) * x)


def with_aux(x, a):
    y = wave(x, a)
    return jnp.sum(y), {"y": y, "count": jnp.argmax(y), "none": None}


def of_tree(params, x):
    y = jnp.tanh(params["w"] * x) + params["rest"][0] * params["rest"][1][1]
    return {"loss": jnp.sum(y**2), "none": None, "pair": (y, None)}


def differentiated(f, *args):
    return jax.grad(lambda *args: jnp.sum(f(*args) * V))(*args)


# The rules of users around bridged functions, and inside of them. All are wrong by a factor, so that one sees
# that they ran.


def own_jvp(f):
    g = jax.custom_jvp(f)
    g.defjvp(lambda primals, tangents: (f(*primals), 3 * jax.jvp(f, primals, tangents)[1]))
    return g


def own_vjp(f):
    g = jax.custom_vjp(f)
    g.defvjp(
        lambda *args: jax.vjp(f, *args),
        lambda pull, cotangent: jax.tree.map(lambda x: 3 * x, pull(cotangent)),
    )
    return g


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 2))
def nondiff(f, x, n):
    return f(x) * n


nondiff.defvjp(lambda f, x, n: (nondiff(f, x, n), x), lambda f, n, x, ct: (3 * n * jax.vjp(f, x)[1](ct)[0],))


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def nondiff_jvp(f, x):
    return f(x)


nondiff_jvp.defjvp(lambda f, primals, tangents: (f(*primals), 3 * jax.jvp(f, primals, tangents)[1]))


@jax.custom_vjp
def symbolic(x, y):
    return x * y, x + y


def _symbolic_fwd(x, y):
    assert isinstance(x.perturbed, bool)
    return (x.value * y.value, x.value + y.value), (x.value, y.value)


def _symbolic_bwd(residuals, cotangents):
    x, y = residuals
    first, second = (0.0 if isinstance(c, SymbolicZero) else c for c in cotangents)
    return 3 * first * y + second, 3 * first * x + second


symbolic.defvjp(_symbolic_fwd, _symbolic_bwd, symbolic_zeros=True)


@jax.custom_jvp
def symbolic_jvp(x, y):
    return x * y


def _symbolic_jvp_rule(primals, tangents):
    x, y = primals
    zero = [isinstance(t, SymbolicZero) for t in tangents]
    terms = [3 * t * o for t, o, z in zip(tangents, (y, x), zero, strict=True) if not z]
    return x * y, sum(terms, jnp.zeros_like(x * y))


symbolic_jvp.defjvp(_symbolic_jvp_rule, symbolic_zeros=True)


def scan_of(f, n=3):
    return lambda x, a: lax.scan(lambda c, k: (f(c, a) + k, jnp.sum(c)), x, jnp.arange(n, dtype=x.dtype))


def donated(b):
    """Two steps, each of which takes over the array of the one before."""
    step = jax.jit(lambda x: x - 0.1 * differentiated(b(wave), x, A), donate_argnums=0)
    return step(step(X + 0))


def ahead_of_time(b):
    """Compiled for shapes alone, then called."""
    f = jax.jit(jax.value_and_grad(lambda x, a: jnp.sum(b(wave)(x, a)), argnums=(0, 1)))
    shapes = [jax.ShapeDtypeStruct(v.shape, v.dtype) for v in (X, A)]
    return f.lower(*shapes).compile()(X, A)


def transposed(b):
    linear = jax.linear_transpose(b(lambda x, y: jnp.cumsum(3 * x, 1) + y[:, ::-1]), X, X)
    return linear(V)


TABLE = {
    "jit": lambda b: jax.jit(b(wave))(X, A),
    "jit of jit": lambda b: jax.jit(lambda x: jax.jit(b(wave))(x, A) + x)(X),
    "jit, static arguments": lambda b: jax.jit(lambda x, n: b(lambda x: x**n)(x), static_argnums=1)(X, 3),
    "jit, donated arguments": donated,
    "ahead of time": ahead_of_time,
    "grad": lambda b: jax.grad(b(row), argnums=(0, 1))(X[0], A),
    "value_and_grad, aux": lambda b: jax.value_and_grad(b(with_aux), argnums=1, has_aux=True)(X, A),
    "grad, aux": lambda b: jax.grad(b(with_aux), has_aux=True)(X, A),
    "jvp": lambda b: jax.jvp(b(wave), (X, A), (V, A)),
    "jvp, aux": lambda b: jax.jvp(b(with_aux), (X, A), (V, A), has_aux=True),
    "jvp of jvp": lambda b: jax.jvp(lambda x: jax.jvp(b(lambda x: wave(x, A)), (x,), (V,))[1], (X,), (V,)),
    "vjp": lambda b: jax.vjp(b(wave), X, A)[1](V),
    "vjp, aux": lambda b: jax.vjp(b(with_aux), X, A, has_aux=True)[1](jnp.float32(2)),
    "linearize": lambda b: jax.linearize(b(wave), X, A)[1](V, A),
    "linearize, twice applied": lambda b: (lambda f: (f(V, A), f(X, 2 * A)))(jax.linearize(b(wave), X, A)[1]),
    "linear_transpose": transposed,
    "linear_transpose of linearize": lambda b: jax.linear_transpose(jax.linearize(b(wave), X, A)[1], X, A)(V),
    "jacfwd": lambda b: jax.jacfwd(b(wave), argnums=(0, 1))(X, A),
    "jacrev": lambda b: jax.jacrev(b(wave), argnums=(0, 1))(X, A),
    "jacrev, aux": lambda b: jax.jacrev(b(with_aux), has_aux=True)(X, A),
    "hessian": lambda b: jax.hessian(b(row), argnums=(0, 1))(X[0], A),
    "jacrev of jacrev": lambda b: jax.jacrev(jax.jacrev(b(row)), argnums=1)(X[0], A),
    "third order": lambda b: jax.grad(jax.grad(jax.grad(b(lambda x: jnp.sin(x) * x**2))))(0.7),
    "vmap": lambda b: jax.vmap(b(row), in_axes=(0, None))(X, A),
    "vmap, other axes": lambda b: jax.vmap(b(wave), in_axes=(1, 0), out_axes=1)(X, A),
    "vmap, axis of a tree": lambda b: jax.vmap(b(of_tree), in_axes=({"w": 0, "none": None, "rest": None}, 1))(
        {"w": jnp.stack([A, 2 * A, -A]), "none": None, "rest": PARAMS["rest"]}, jnp.stack([X, V, X], 1)
    ),
    "vmap, axis_size": lambda b: jax.vmap(lambda: b(row)(X[0], A), axis_size=3)(),
    "vmap, spmd_axis_name": lambda b: jax.vmap(jax.grad(b(row)), in_axes=(0, None), spmd_axis_name="batch")(
        X, A
    ),
    "vmap of grad of vmap": lambda b: jax.vmap(
        jax.grad(lambda x, a: jnp.sum(jax.vmap(b(row), (0, None))(x, a)), (0, 1)), (None, 0)
    )(X, jnp.stack([A, 2 * A])),
    "vmap of hessian": lambda b: jax.vmap(jax.hessian(b(row)), in_axes=(0, None))(X, A),
    "vmap over a named axis": lambda b: jax.vmap(
        lambda x: lax.psum(jax.grad(b(row))(x, A), "i") * x, axis_name="i"
    )(X),
    "pytrees with None": lambda b: jax.value_and_grad(lambda p, x: b(of_tree)(p, x)["loss"])(PARAMS, X),
    "vjp of pytrees with None": lambda b: jax.vjp(b(of_tree), PARAMS, X)[1](
        {"loss": jnp.float32(1), "none": None, "pair": (V, None)}
    ),
    "custom_jvp around": lambda b: differentiated(own_jvp(b(wave)), X, A),
    "custom_vjp around": lambda b: differentiated(own_vjp(b(wave)), X, A),
    "custom_jvp inside": lambda b: jax.jacfwd(b(own_jvp(row)), argnums=1)(X[0], A),
    "custom_vjp inside": lambda b: differentiated(b(own_vjp(wave)), X, A),
    "custom_vjp, nondiff_argnums": lambda b: differentiated(b(lambda x: nondiff(jnp.sin, x, 2)), X),
    "custom_vjp of bridged, nondiff_argnums": lambda b: differentiated(
        lambda x: nondiff(b(jnp.sin), x, 2), X
    ),
    "custom_jvp, nondiff_argnums": lambda b: differentiated(b(lambda x: nondiff_jvp(jnp.cos, x)), X),
    "custom_vjp, symbolic zeros": lambda b: jax.grad(b(lambda x: jnp.sum(symbolic(x, 2 * V)[0])))(X),
    "custom_jvp, symbolic zeros": lambda b: differentiated(b(lambda x: symbolic_jvp(x, V)), X),
    "checkpoint around": lambda b: differentiated(jax.checkpoint(b(wave)), X, A),
    "checkpoint inside": lambda b: differentiated(b(jax.checkpoint(wave)), X, A),
    "checkpoint, policy": lambda b: differentiated(
        jax.checkpoint(lambda x: b(wave)(x @ x.T @ x, A), policy=jax.checkpoint_policies.dots_saveable), X
    ),
    "scan over": lambda b: jax.vjp(scan_of(b(wave)), X, A)[1]((V, jnp.arange(3.0))),
    "scan over grad": lambda b: scan_of(lambda x, a: differentiated(b(wave), x, a))(X, A),
    "scan over, vmap": lambda b: jax.vmap(scan_of(b(wave)), (0, None))(jnp.stack([X, V]), A),
    "map over": lambda b: jax.grad(lambda a: jnp.sum(lax.map(lambda x: b(row)(x, a), X)))(A),
    "cond over": lambda b: jax.grad(lambda x: jnp.sum(lax.cond(x[0, 0] > 0, b(jnp.sin), b(jnp.cos), x)))(X),
    "switch over": lambda b: jax.vmap(lambda i, x: lax.switch(i, [b(jnp.sin), b(jnp.exp), jnp.cos], x))(
        jnp.arange(3), X
    ),
    "while over": lambda b: jax.jvp(
        lambda x: lax.while_loop(lambda c: jnp.sum(c) > -9.0, lambda c: b(lambda c: c - jnp.exp(-c))(c), x),
        (X,),
        (V,),
    ),
    "fori over": lambda b: jax.grad(lambda x: jnp.sum(lax.fori_loop(0, 4, lambda i, c: b(wave)(c, A), x)))(X),
    "bridged in bridged": lambda b: differentiated(b(lambda x: b(wave)(x, A) * x), X),
    "grad inside": lambda b: jax.vmap(b(jax.grad(row)), (0, None))(X, A),
    "vmap and hessian inside": lambda b: differentiated(
        b(jax.vmap(lambda x: jnp.diag(jax.hessian(row)(x, A)) * x)), X
    ),
    "eval_shape": lambda b: jax.tree.map(
        lambda s: jnp.ones(s.shape, s.dtype), jax.eval_shape(b(with_aux), X, A)
    ),
    "numpy and Python arguments": lambda b: jax.grad(b(lambda x, y: jnp.sum(x * y)))(np.asarray(X), 2.0),
}


EXECUTES = "julia", "xla"


@functools.cache
def expected(name):
    return TABLE[name](lambda f: f)


ONLY_EAGER = [name for name in TABLE if "donated" in name]
EAGER = dict.fromkeys([*some(TABLE, len(TABLE) // 2), *ONLY_EAGER])


@pytest.mark.parametrize(("name", "execute"), covering(EAGER, EXECUTES, least=1))
def test_as_without_the_bridge(name, execute):
    found = TABLE[name](lambda f: pb.bridge(f, execute=execute))
    assert jax.tree.structure(found) == jax.tree.structure(expected(name))
    assert_agree(found, expected(name), name)


@pytest.mark.parametrize("name", [name for name in TABLE if name not in ONLY_EAGER])
def test_as_without_the_bridge_under_jit(name):
    bridges = [functools.partial(pb.bridge, execute=execute) for execute in EXECUTES]
    *ours, theirs = computed([functools.partial(TABLE[name], b) for b in (*bridges, lambda f: f)], [()] * 3)
    for execute, found in zip(EXECUTES, ours, strict=True):
        assert_agree(found, theirs, f"{name}, {execute}")
