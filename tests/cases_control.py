"""Cases of control flow, rematerialisation and the user's rules, and small Programs out of real code."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from casekit import Case, bools, distinct, given, ints, real
from jax import lax

X = real(-2, 2)
POSITIVE = real(0.3, 2)
POSITIVE_ROW = real(0.3, 2, (5,))
SCALAR = real(-2, 2, ())


# The user's rules. Each is deliberately not what differentiating the function would give.


@jax.custom_jvp
def scaled_sine(x, n):
    return jnp.sin(x) * n


@scaled_sine.defjvp
def _scaled_sine_jvp(primals, tangents):
    (x, n), (dx, dn) = primals, tangents
    return scaled_sine(x, n), 3 * jnp.cos(x) * n * dx + jnp.sin(x) * dn


@jax.custom_jvp
def counted(x, n):
    """An integer operand and an integer result."""
    return x * n, n + 1


@counted.defjvp
def _counted_jvp(primals, tangents):
    (x, n), (dx, _) = primals, tangents
    return counted(x, n), (5 * dx, np.zeros(jnp.shape(n), jax.dtypes.float0))


@jax.custom_jvp
def symbolic(x, y):
    return x * y


def _symbolic_jvp(primals, tangents):
    x, y = primals
    total = jnp.zeros_like(x * y)
    for t, other in zip(tangents, (y, x), strict=True):
        if not isinstance(t, jax.custom_derivatives.SymbolicZero):
            total = total + 2 * t * other
    return x * y, total


symbolic.defjvp(_symbolic_jvp, symbolic_zeros=True)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def applied(f, x):
    return f(x)


@applied.defjvp
def _applied_jvp(f, primals, tangents):
    return f(*primals), 7 * tangents[0]


@jax.custom_vjp
def clipped(x, low):
    """The identity with a clipped cotangent."""
    return x * 1, low + 1


clipped.defvjp(
    lambda x, low: ((clipped(x, low)), (x, low)),
    lambda res, ct: (jnp.clip(ct[0], -0.5, 0.5) * res[0], None),
)


@jax.custom_vjp
def loopy(x):
    return lax.while_loop(lambda c: c.sum() < 40.0, lambda c: 2 * c, x)


loopy.defvjp(lambda x: (loopy(x), jnp.cos(x)), lambda res, ct: (ct * res,))


@jax.custom_vjp
def reordered(x):
    return x[_ORDER]


_ORDER = np.array([2, 0, 1], np.int32)


def _reordered_bwd(residuals, ct):
    """Needs residuals as numbers: the shape, and which of two rules it is to be."""
    shape, order, scale, back = residuals
    return (5 * scale * jnp.ones(shape) * (ct[jnp.argsort(order)] if back else ct),)


reordered.defvjp(lambda x: (reordered(x), (x.shape, _ORDER, jnp.cos(x), True)), _reordered_bwd)


@jax.custom_vjp
def weighted(x):
    """Closes over an array, which becomes an operand where a call under jit is batched."""
    return _WEIGHTS.astype(x.dtype) * x


_WEIGHTS = np.array([0.5, -2.0, 3.0, 1.0])
weighted.defvjp(lambda x: (weighted(x), jnp.sin(x)), lambda res, ct: (13 * res * ct,))


@functools.partial(jax.custom_vjp, nondiff_argnums=(1,))
def powered(x, n):
    return x**n


powered.defvjp(lambda x, n: (x**n, x), lambda n, x, ct: (11 * n * x ** (n - 1) * ct,))


@jax.custom_vjp
def vjp_symbolic(x, y):
    return x * y, x + y


def _vjp_symbolic_fwd(x, y):
    return (x.value * y.value, x.value + y.value), (x.value, y.value, x.perturbed)


def _vjp_symbolic_bwd(res, cts):
    x, y, _ = res
    first, second = (0 if isinstance(c, jax.custom_derivatives.SymbolicZero) else c for c in cts)
    return 2 * first * y + second, first * x + second


vjp_symbolic.defvjp(_vjp_symbolic_fwd, _vjp_symbolic_bwd, symbolic_zeros=True)


def program(
    name: str, f, *makes, active=(), dtypes: str = "f32 f64", op: str = "program", **more
) -> list[Case]:
    more = {"exact": False, **more}
    return [Case(f"{name}/{d}", op, f, makes, d, active, **more) for d in dtypes.split()]


def _branches(i, x, y):
    return lax.switch(i, [lambda x, y: x * y, lambda x, y: jnp.sin(x), lambda x, y: y + 1], x, y)


def _scan_all(a, c, xs):
    def step(carry, x):
        c, n = carry
        return (jnp.tanh(a * c + x[0]), n + 1), (c * x[1], n)

    return lax.scan(step, (c, 0), (xs[:, 0], xs[:, 1]))


def _nested(x, y):
    def outer(c, row):
        def inner(d, e):
            return d * 0.9 + lax.cond(e > 0, jnp.sin, lambda v: v * e, d), d

        last, ys = lax.scan(inner, c, row, reverse=True, unroll=2)
        return last + ys.sum(), ys

    return lax.scan(outer, y, x)


def _newton(x, n):
    return lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, (s[1] + x / s[1]) / 2), (0, x))[1]


def _mlp(x, w, v):
    return jax.nn.log_softmax(jax.nn.gelu(x @ w) @ v, axis=-1)


def _closed_over(x):
    scale = x[0, 0]
    return jax.checkpoint(lambda y: jnp.sin(y) * scale)(x)


CASES = [
    *program(
        "cond", lambda p, x: lax.cond(p, lambda x: x * x, jnp.cos, x), bools(()), X, active=(1,), op="cond"
    ),
    *program("cond_switch", _branches, ints(-2, 5, (), "i32"), X, X, active=(1, 2), op="cond"),
    *program(
        "cond_no_operands",
        lambda p: lax.cond(p, lambda: 1.0, lambda: 2.0),
        bools(()),
        op="cond",
        dtypes="f32",
    ),
    *program(
        "scan", _scan_all, SCALAR, real(-1, 1, (4,)), real(-1, 1, (5, 2, 4)), active=(0, 1, 2), op="scan"
    ),
    *program(
        "scan_reverse",
        lambda x: lax.scan(lambda c, x: (c * x, c + x), x[0], x, reverse=True),
        X,
        active=(0,),
        op="scan",
    ),
    *program(
        "scan_no_xs",
        lambda x: lax.scan(lambda c, _: (jnp.sin(c), None), x, length=4)[0],
        X,
        active=(0,),
        op="scan",
    ),
    *program(
        "scan_empty", lambda x: lax.scan(lambda c, x: (c + x, c), x[0], x[:0]), X, active=(0,), op="scan"
    ),
    *program(
        "fori_loop", lambda x: lax.fori_loop(0, 3, lambda i, c: c * 1.1 + i, x), X, active=(0,), op="scan"
    ),
    *program("nested", _nested, real(-1, 1, (3, 4)), SCALAR, active=(0, 1), op="scan"),
    *program("while", _newton, POSITIVE, given(5, "i32"), active=(0,), op="while", reverse=False),
    *program(
        "while_vmapped",
        jax.vmap(lambda x: lax.while_loop(lambda c: c < 9, lambda c: c * 2, x)),
        POSITIVE_ROW,
        active=(0,),
        op="while",
        reverse=False,
    ),
    *program(
        "while_vmapped_consts",
        jax.vmap(_newton),
        POSITIVE_ROW,
        ints(0, 5, (5,), "i32"),
        active=(0,),
        op="while",
        reverse=False,
    ),
    *program("remat", jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)) * x), X, active=(0,), op="remat"),
    *program(
        "remat_no_barrier",
        jax.checkpoint(lambda x: jnp.exp(x) * x, prevent_cse=False),
        X,
        active=(0,),
        op="remat",
    ),
    *program(
        "remat_policy",
        jax.checkpoint(lambda x: jnp.sin(jnp.exp(x) @ x.T), policy=jax.checkpoint_policies.dots_saveable),
        X,
        active=(0,),
        op="saveable",
    ),
    *program("remat_closed_over", _closed_over, X, active=(0,), op="remat"),
    *program("custom_jvp", lambda x, n: scaled_sine(x, n) * x, X, SCALAR, active=(0, 1), op="custom_jvp"),
    *program("custom_jvp_int", counted, X, ints(1, 5, (), "i32"), active=(0,), op="custom_jvp"),
    *program("custom_jvp_symbolic", lambda x: symbolic(x, 2.0), X, active=(0,), op="custom_jvp"),
    *program("custom_jvp_nondiff", lambda x: applied(jnp.sin, x), X, active=(0,), op="custom_jvp"),
    *program(
        "custom_jvp_in_scan",
        lambda x: lax.scan(lambda c, x: (scaled_sine(c, x), c), x[0], x),
        X,
        active=(0,),
        op="custom_jvp",
    ),
    *program("custom_vjp", lambda x: clipped(x, 3), X, active=(0,), op="custom_vjp"),
    *program("custom_vjp_loop", loopy, POSITIVE, active=(0,), op="custom_vjp"),
    *program("custom_vjp_nondiff", lambda x: powered(x, 3), X, active=(0,), op="custom_vjp"),
    *program("custom_vjp_numbers", reordered, X, active=(0,), op="custom_vjp"),
    *program(
        "custom_vjp_numbers_scan",
        lambda x: lax.scan(lambda c, _: (reordered(jnp.sin(c)), None), x, None, length=2)[0],
        X,
        active=(0,),
        op="custom_vjp",
        second=False,  # in JAX there is no forward mode through such a scan
    ),
    *program("custom_vjp_closure", jax.vmap(jax.jit(weighted)), X, active=(0,), op="custom_vjp"),
    *program("custom_vjp_symbolic", vjp_symbolic, X, X, active=(0, 1), op="custom_vjp"),
    *program(
        "custom_vjp_remat", jax.checkpoint(lambda x: powered(jnp.sin(x), 2)), X, active=(0,), op="custom_vjp"
    ),
    *program(
        "seed",
        lambda x, a: jnp.sin(a * x) ** 2 / a,
        real(-1, 1, (2, 3, 4)),
        real(0.5, 2, (4,)),
        active=(0, 1),
    ),
    *program("mlp", _mlp, X, real(-1, 1, (4, 5)), real(-1, 1, (5, 2)), active=(0, 1, 2)),
    *program("relu_norm", lambda x: jnp.linalg.norm(jax.nn.relu(x)), distinct(), active=(0,)),
    *program("logsumexp", lambda x: jax.nn.logsumexp(x, axis=1), X, active=(0,)),
    *program("variance", lambda x: jnp.var(x, axis=0, keepdims=True), X, active=(0,)),
    *program(
        "interp",
        lambda x: jnp.interp(x, jnp.arange(-3.0, 3.0), jnp.arange(6.0) ** 2),
        distinct(),
        active=(0,),
        dtypes="f32",
    ),
    *program(
        "jitted", jax.jit(lambda x: jax.jit(jnp.sin)(x) + jnp.where(x > 0, x, 0)), distinct(), active=(0,)
    ),
    *program("einsum", lambda x, y: jnp.einsum("ij,kj->ik", x, y), X, X, active=(0, 1)),
    *program("indexing", lambda x: x.at[1:, ::2].add(x[:2, :2]).at[0].set(x[2])[::-1], X, active=(0,)),
    *program("modulus", lambda x: jnp.abs(jnp.exp(1j * x) * x) ** 2, X, active=(0,)),
    *program("sorted", lambda x: jnp.sort(x, axis=0) * jnp.argsort(x, axis=0), distinct(), active=(0,)),
    *program("median", lambda x: jnp.median(x, axis=1), distinct((3, 5)), active=(0,)),
    *program("pytree", lambda x: {"a": x, "b": [x * 2, (x.sum(),)]}, X, active=(0,)),
]
