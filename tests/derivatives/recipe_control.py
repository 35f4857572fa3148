"""Control flow, nested calls and the user's own derivative rules, for random functions.

Each takes the operands, then functions of arrays made from nested recipes, then other parameters.

`reference`: the same written out, with no loop, branch or checkpoint left. JAX needs it that way: it cannot
run while loops backwards, and inside scan, cond and checkpoint it forgets custom_jvp rules before second
derivatives; some of the calls it cannot run backwards or map over.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.custom_derivatives import linear_call
from recipe_shapes import conform


def _test(x):
    """A bool out of an array, far from undecided."""
    return jnp.sum(x) > 0.137


def _index(x):
    return lax.floor(3 * lax.logistic(2 * jnp.sum(x))).astype(jnp.int32)


def _chosen(index, cases):
    """The case of that number, all of which are computed."""
    return [lax.select_n(jnp.broadcast_to(index, ys[0].shape), *ys) for ys in zip(*cases, strict=True)]


def _cond(xs, yes, no, *, reference):
    if reference:
        return _chosen(_test(xs[0]), [no(*xs), yes(*xs)])
    return lax.cond(_test(xs[0]), yes, no, *xs)


def _switch(xs, *branches, reference):
    if reference:
        return _chosen(jnp.clip(_index(xs[0]), 0, len(branches) - 1), [b(*xs) for b in branches])
    return lax.switch(_index(xs[0]), branches, *xs)


def _scan(xs, body, reverse, *, reference):
    """The first operand is a constant and the carry's start; the second is scanned over."""
    x, y = xs

    def step(carry, row):
        c, n = carry
        new, out = body(c, 0.5 * x, row)
        return (jnp.tanh(new), n + 1), out + 0.1 * n

    if reference:
        carry, ys = (x, 0), {}
        for k in range(len(y))[:: -1 if reverse else 1]:
            carry, ys[k] = step(carry, y[k])
        return carry[0], jnp.stack([ys[k] for k in range(len(y))]) if ys else y

    (last, _), ys = lax.scan(step, (x, 0), y, reverse=reverse)
    return last, ys


def _fori(xs, body, n, *, reference):
    x, y = xs
    if reference:
        for i in range(n):
            x = jnp.tanh(body(x, y)[0] + 0.1 * i)
        return [x]
    return [lax.fori_loop(0, n, lambda i, c: jnp.tanh(body(c, y)[0] + 0.1 * i), x)]


def _while_counted(xs, body, n, *, reference):
    x, y = xs
    if reference:
        for _ in range(n):
            x = jnp.sin(body(x, y)[0])
        return [x]
    return [lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, jnp.sin(body(s[1], y)[0])), (0, x))[1]]


def _while_bounded(xs, body, n, *, reference):
    """Ends early where the carry's sum is large; reverse mode needs the bound that the counter gives."""
    x, y = xs

    def going(c):
        return jnp.sum(c) < 0.731

    if reference:
        for _ in range(n):
            x = jnp.where(going(x), jnp.sin(body(x, y)[0]) + 0.3, x)
        return [x]
    done = lax.while_loop(
        lambda s: (s[0] < n) & going(s[1]), lambda s: (s[0] + 1, jnp.sin(body(s[1], y)[0]) + 0.3), (0, x)
    )
    return [done[1]]


def _vmap(xs, body, *, reference):
    return [jax.vmap(lambda x, y: body(x, y)[0], in_axes=(0, None))(*xs)]


def _checkpoint(xs, body, *, reference, **options):
    return body(*xs) if reference else jax.checkpoint(body, **options)(*xs)


def _custom_jvp(xs, body, *, reference):
    """A rule that is one and a half times the derivative, so that it shows whether it was used."""

    @jax.custom_jvp
    def f(*args):
        return body(*args)

    @f.defjvp
    def _rule(primals, tangents):
        value, tangent = jax.jvp(body, primals, tangents)
        return value, tuple(1.5 * t for t in tangent)

    return f(*xs)


def _custom_vjp(xs, body, *, reference):
    @jax.custom_vjp
    def f(*args):
        return body(*args)

    def backward(args, cotangents):
        # JAX pulls back here, and cannot pull back through a while loop.
        return tuple(1.5 * t for t in jax.vjp(functools.partial(body, reference=True), *args)[1](cotangents))

    f.defvjp(lambda *args: (body(*args), args), backward)
    return f(*xs)


def _linear_call(xs, body, *, reference):
    """Factors on the first operand, that depend on the second; JAX cannot map over it."""
    x, y = xs
    factors = lax.stop_gradient(jnp.tanh(body(x, y)[0]))
    if reference:
        return [factors * x]
    times = lambda f, t: f * t  # noqa: E731
    return [linear_call(times, times, factors, x)]


def _custom_vmap(xs, body, *, reference):
    """A rule that changes nothing; JAX cannot run it backwards."""
    if reference:
        return body(*xs)
    f = jax.custom_batching.custom_vmap(lambda *args: tuple(body(*args)))

    @f.def_vmap
    def _rule(size, batched, *args):
        axes = [0 if b else None for b in batched]
        return jax.vmap(lambda *a: tuple(body(*a)), in_axes=axes)(*args), (True,) * 2

    return f(*xs)


def _ragged_dot(xs, *, reference):
    """Rows of the first operand in two groups, each by a matrix of its own; JAX maps over it rarely."""
    x, y = xs
    rows, matrices = jnp.tanh(x.reshape(-1, x.shape[-1])), conform(y, (2, x.shape[-1], 2))
    first = min(1, rows.shape[0])
    if reference:
        return [jnp.concatenate([rows[:first] @ matrices[0], rows[first:] @ matrices[1]])]
    return [lax.ragged_dot(rows, matrices, np.array([first, rows.shape[0] - first], np.int32))]


CONTROL: dict[str, Callable] = {
    "jit": lambda xs, body, *, reference: jax.jit(body)(*xs),
    "checkpoint": _checkpoint,
    "checkpoint_merged": functools.partial(_checkpoint, prevent_cse=False),
    "cond": _cond,
    "switch": _switch,
    "scan": _scan,
    "fori": _fori,
    "while_counted": _while_counted,
    "while_bounded": _while_bounded,
    "vmap": _vmap,
    "custom_jvp": _custom_jvp,
    "custom_vjp": _custom_vjp,
    "custom_vmap": _custom_vmap,
    "linear_call": _linear_call,
    "ragged_dot": _ragged_dot,
}

UNMAPPED = {"linear_call", "cholesky_update"}
"""What has no batching rule in JAX, which maps over the Program's operations."""

WHOLE_ONLY = {"custom_vjp"}
"""What has no forward mode, in JAX as here."""
