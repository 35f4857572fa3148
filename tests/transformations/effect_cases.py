"""Functions with prints and callbacks, and what they left behind: test_effects.py.

Each takes a vector of three numbers and gives a number. `record` notes a tag and values in `EVENTS`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

EVENTS: list[tuple] = []


def _note(tag: str, *values: Any) -> None:
    EVENTS.append((tag, *(np.asarray(value, np.float64) for value in values)))


def record(tag: str, *values: Any, ordered: bool = False) -> None:
    jax.debug.callback(functools.partial(_note, tag), *values, ordered=ordered)


def recorded(run: Callable[[], Any]) -> tuple[Any, list[tuple]]:
    """The value of `run()` and the events while it ran."""
    EVENTS.clear()
    value = jax.block_until_ready(run())
    jax.effects_barrier()
    return value, list(EVENTS)


def twice_on_host(x):
    """2 x, by a callback without a derivative."""
    like = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return jax.pure_callback(lambda v: 2 * np.asarray(v), like, x, vmap_method="expand_dims")


# Straight code


def between(x):
    y = jnp.sin(x)
    record("y", y)
    z = jnp.cos(y)
    record("z", z[0], x[1])
    return jnp.sum(z * x)


def unused(x):
    record("unused", jnp.exp(x) * 2)
    return jnp.sum(x * x)


def independent_of_the_argument(x):
    record("constant", 2.0 * jnp.arange(3.0))
    record("nothing")
    return jnp.sum(x * 2)


def ordered(x):
    y = jnp.sin(x)
    record("first", y[0], ordered=True)
    z = jnp.cos(y)
    record("second", x[1], ordered=True)
    record("third", z[0], ordered=True)
    record("last", x, ordered=True)  # waits for the others, though it could be computed first
    return jnp.sum(z * x)


def random_key(x):
    key, other = jax.random.split(jax.random.key(3))
    jax.debug.callback(lambda k: _note("key", jax.random.key_data(k)), other)
    return jnp.sum(x * jax.random.normal(key, (3,)))


# Loops, branches, calls


def scan(x):
    def step(carry, a):
        carry = carry * jnp.sin(a) + a
        record("step", carry)
        return carry, carry * a

    last, ys = lax.scan(step, 1.0, x)
    return last + jnp.sum(ys)


def ordered_scan(x):
    def step(carry, a):
        record("before", a, ordered=True)
        carry = carry * jnp.sin(a) + a
        record("after", carry, ordered=True)
        return carry, None

    last, _ = lax.scan(step, 1.0, x)
    record("end", last, ordered=True)
    return last


def counter(x):
    def step(i, carry):
        record("trip", i)
        return carry * jnp.cos(x[i])

    return jnp.sum(lax.fori_loop(0, 3, step, x))


def weak_carry(x):
    def step(_, carry):
        record("carry", carry)
        return carry + 1.0

    return lax.fori_loop(0, 2, step, 0.0) * jnp.sum(x)


def while_loop(x):
    def step(state):
        i, value = state
        record("trip", i, value)
        return i + 1, value * x[0]

    return lax.while_loop(lambda state: state[0] < 3, step, (0, x[1]))[1] * jnp.sum(x)


def condition_of_while(x):
    def going_on(state):  # XLA drops the callback of a condition whose trips it can count
        record("condition", state[0])
        return jnp.abs(state[1]) > 0.3

    return lax.while_loop(going_on, lambda s: (s[0] + 1, s[1] * x[0]), (0, x[1]))[1] * jnp.sum(x)


def cond(x):
    def large(x):
        record("large", x)
        return x * 2

    def small(x):
        record("small", x[0])
        return x * x

    return jnp.sum(lax.cond(x[0] > 0.5, large, small, x))


def nested_jit(x):
    @jax.jit
    def inner(x):
        y = jnp.sin(x)
        record("y", y)
        return y

    return jnp.sum(inner(x) * inner(2 * x))


def nested_vmap(x):
    def item(a, b):
        record("product", a * b)
        record("shared", b * 2)
        return a * b

    return jnp.sum(jax.vmap(item, (0, None))(x, x[0]))


def nested_grad(x):
    def inner(x):
        y = jnp.sin(x)
        record("y", y)
        return jnp.sum(y * x)

    return jnp.sum(jax.grad(inner)(x))


def deep(x):
    def outer(carry, a):
        def large(c):
            record("large", c)
            return c * 0.5

        def inner(c, _):
            c = lax.cond(c > 0.3, large, lambda c: c + 1.0, c)
            return c * a, c

        carry, _ = lax.scan(jax.checkpoint(inner), carry, jnp.arange(2.0))
        record("outer", carry)
        return carry, None

    return lax.scan(outer, x[0], x)[0]


# Checkpoints


def _checkpointed(policy):
    def function(x):
        @functools.partial(jax.checkpoint, policy=policy)
        def inner(x):
            y = jnp.sin(x) @ jnp.full((3, 3), 0.5)
            record("y", y)
            return jnp.cos(y) * x

        return jnp.sum(inner(2 * x))

    return function


checkpoint = _checkpointed(None)
checkpoint_keeping_products = _checkpointed(jax.checkpoint_policies.dots_saveable)
checkpoint_keeping_all = _checkpointed(jax.checkpoint_policies.everything_saveable)


def checkpoint_with_a_table(x):
    table = np.arange(9.0, dtype=np.float32).reshape(3, 3)

    @jax.checkpoint
    def inner(x):
        y = jax.jit(lambda v: v @ table)(x)
        record("y", y)
        return jnp.cos(y) * x

    return jnp.sum(inner(2 * x))


# Derivative rules


def custom_jvp_function(x):
    @jax.custom_jvp
    def f(x):
        record("value", x[0])
        return jnp.sin(x)

    f.defjvp(lambda primals, tangents: (f(*primals), 3 * tangents[0] * primals[0]))
    return jnp.sum(f(x) * x)


def custom_jvp_rule(x):
    @jax.custom_jvp
    def f(x):
        return jnp.sin(x)

    @f.defjvp
    def rule(primals, tangents):
        record("rule", primals[0] * 2)
        return f(*primals), 3 * tangents[0] * primals[0]

    return jnp.sum(f(x) * x)


def _with_custom_vjp(in_value: bool):
    @jax.custom_vjp
    def f(x):
        if in_value:
            record("value", x)
        return jnp.sin(x)

    def forward(x):
        if in_value:
            record("forward", x)
        return f(x), x

    def backward(x, cotangent):
        record("cotangent", cotangent)
        return (3 * x * cotangent,)

    f.defvjp(forward, backward)
    return f


def custom_vjp_everywhere(x):
    return jnp.sum(_with_custom_vjp(True)(x * 2) * x)


def custom_vjp_backward(x):
    return jnp.sum(_with_custom_vjp(False)(x * 2) * x)


def custom_vjp_in_scan(x):
    f = _with_custom_vjp(False)
    return lax.scan(lambda carry, a: (f(carry * a), None), 1.0, x)[0]


# Callbacks with results


def pure_callback(x):
    return jnp.sum(twice_on_host(lax.stop_gradient(jnp.sin(x))) * x)


def pure_callback_in_scan(x):
    def step(carry, a):
        y = twice_on_host(lax.stop_gradient(carry * a))
        return carry * y + a, y

    return lax.scan(step, 1.0, x)[0]


def pure_callback_with_rule(x):
    @jax.custom_jvp
    def f(x):
        return twice_on_host(x)

    f.defjvp(lambda primals, tangents: (f(*primals), 2 * tangents[0]))
    return jnp.sum(f(jnp.sin(x)) * x)


ONLY_REVERSE = ("custom_vjp_everywhere", "custom_vjp_backward", "custom_vjp_in_scan")
"""Without forward mode, in JAX too."""

NO_REVERSE = ("while_loop", "condition_of_while")
"""Without reverse mode, in JAX too: its while loops have none, and these are its loops."""

CASES: dict[str, Callable] = {
    f.__name__: f
    for f in (
        *(between, unused, independent_of_the_argument, ordered, random_key),
        *(scan, ordered_scan, counter, weak_carry, while_loop, condition_of_while, cond),
        *(nested_jit, nested_vmap, nested_grad, deep, checkpoint_with_a_table),
        *(custom_jvp_function, custom_jvp_rule),
        *(custom_vjp_everywhere, custom_vjp_backward, custom_vjp_in_scan),
        *(pure_callback, pure_callback_in_scan, pure_callback_with_rule),
    )
} | {
    "checkpoint": checkpoint,
    "checkpoint_keeping_products": checkpoint_keeping_products,
    "checkpoint_keeping_all": checkpoint_keeping_all,
}
