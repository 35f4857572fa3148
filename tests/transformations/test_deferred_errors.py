"""`equinox.error_if` in bridged functions: same results, same errors, and Programs that it does not cut."""

from __future__ import annotations

import functools
import re

import equinox as eqx
import equinox.internal as eqxi
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agreement import assert_agree
from bound_programs import primitives_in
from jax import lax

import pybridge as pb


def before_and_after(x):
    x = eqx.error_if(x, x > 2, "large at first")
    y = jnp.sin(x) * x
    return eqx.error_if(y, y < -1, "negative at last")


def in_while(x):
    def trip(state):
        k, y = state
        y = eqx.error_if(y, y > 4.5, "large in a while loop")
        return k + 1, 1.3 * y + jnp.sin(y)

    return lax.while_loop(lambda state: state[0] < 4, trip, (0, x))[1]


def in_scan(x):
    def trip(y, k):
        y = eqx.error_if(y * k, y > 3, "large in a scan")
        return y, jnp.sin(y)

    y, ys = lax.scan(trip, x, jnp.arange(1.0, 4.0))
    return y + jnp.sum(ys, 0)


def in_branch(x):
    def careful(y):
        return eqx.error_if(y**2, y > 1.5, "large in a branch")

    return lax.cond(jnp.sum(x) > 1, careful, jnp.sin, x)


def in_nested_loops(x):
    def outer(k, y):
        def inner(j, y):
            return eqx.error_if(y + 0.1 * jnp.cos(y * j), y < -1, "small in nested loops")

        y = eqx.error_if(y, y > 3, "large in nested loops")
        return lax.fori_loop(0, 2 + k, inner, 0.9 * y)

    return lax.fori_loop(0, 3, outer, x)


def by_message(x):
    which = jnp.where(x[0] > 2, 1, 0)
    messages = ["the first is not large", "the first is large"]
    return eqxi.branched_error_if(jnp.sin(x), jnp.any(x > 1.8), which, messages)


def in_solvers_loop(x, kind="checkpointed"):
    def trip(state):
        k, y = state
        return k + 1, eqx.error_if(y + 0.1 * jnp.sin(y), y > 2, "large in a loop with checkpoints")

    start = (jnp.int32(0), x)
    return eqxi.while_loop(lambda state: state[0] < 3, trip, start, max_steps=8, kind=kind)[1]


def in_checkpoint(x):
    @jax.checkpoint
    def step(y):
        return jnp.sin(eqx.error_if(2 * y, y > 1.9, "large in a checkpoint"))

    return step(step(x) + x)


def in_bounded_loop(x):
    return in_solvers_loop(x, kind="bounded")


def in_batch(x):
    return jax.vmap(lambda y: in_while(y[None])[0])(x)


def in_batch_of_loops(x):
    """Its items end at different trips."""

    def of_one(y):
        def trip(z):
            return eqx.error_if(1.5 * z + 0.2, z < -3, "small in a batch of loops")

        return lax.while_loop(lambda z: (z < 1) & (z > -5), trip, y)

    x = eqx.error_if(x, x > 2.2, "large in front of a batch of loops")
    return jax.vmap(of_one)(x)


FUNCTIONS = [
    before_and_after,
    in_while,
    in_scan,
    in_branch,
    in_nested_loops,
    by_message,
    in_checkpoint,
    in_solvers_loop,
    in_bounded_loop,
    in_batch,
]
WITH_FORWARD_MODE = {in_solvers_loop: functools.partial(in_solvers_loop, kind="lax")}
LEFT_TO_JAX = [in_batch_of_loops]
of_each = pytest.mark.parametrize("f", FUNCTIONS)

FINE = np.array([0.3, 0.9, -0.2])
BATCH = np.stack([FINE, 0.5 * FINE, FINE[::-1]])
WRONG = (np.array([0.3, 2.5, 0.1]), np.array([2.5, 0.3, -0.1]), np.array([3.5, -4.0, 3.2]))


def total(f):
    return lambda x: jnp.sum(jnp.cos(f(x)))


def message_of(run) -> str | None:
    """What an error says, among the messages of this file; None if there is no error."""
    try:
        jax.block_until_ready(run())
    except Exception as e:
        found = re.search(r"EquinoxRuntimeError: ([a-z ]+)", f"{type(e).__name__}: {e}")
        assert found, e
        return found[1]
    return None


@of_each
def test_values_and_derivatives(f, x64):
    g = pb.bridge(total(f))
    assert_agree(g(FINE), total(f)(FINE), "value")
    assert_agree(jax.jit(jax.vmap(g))(BATCH), jax.vmap(total(f))(BATCH), "batch")
    # All have forward mode, of JAX's one in another form; for `while` loops JAX has no other mode.
    derivative = jax.jacfwd(total(WITH_FORWARD_MODE.get(f, f)))
    assert_agree(jax.jacfwd(g)(FINE), derivative(FINE), "forward mode")
    assert_agree(jax.grad(g)(FINE), derivative(FINE), "gradient")
    assert_agree(jax.jit(jax.hessian(g))(FINE), jax.jacfwd(derivative)(FINE), "hessian")


@of_each
def test_one_program_then_the_errors(f, x64):
    bound = [eqn.primitive.name for eqn in jax.make_jaxpr(pb.bridge(total(f)))(FINE).jaxpr.eqns]
    assert bound == ["julia_call", "custom_jvp_call"]


@pytest.mark.parametrize("f", [*FUNCTIONS, *LEFT_TO_JAX])
@pytest.mark.parametrize("x", WRONG)
def test_same_errors(f, x, x64):
    f = total(f)
    g = pb.bridge(f)
    expected = message_of(lambda: jax.jit(f)(x))
    assert message_of(lambda: g(x)) == expected
    assert message_of(lambda: jax.jit(g)(x)) == expected
    assert message_of(lambda: jax.jit(jax.jacfwd(g))(x)) == expected
    assert message_of(lambda: jax.grad(g)(x)) == expected
    assert message_of(lambda: jax.jit(jax.vmap(g))(np.stack([FINE, x]))) == expected


@pytest.mark.parametrize("f", [in_while, in_scan])
def test_the_errors_are_raised(f, x64):
    """Else those above could all be None."""
    assert message_of(lambda: pb.bridge(f)(WRONG[2])) == message_of(lambda: f(WRONG[2])) is not None


DERIVATIVES = {
    "gradient": jax.grad,
    "forward mode": jax.jacfwd,
    "hessian": jax.hessian,
    "batch of gradients": lambda f: lambda x: jax.vmap(jax.grad(f))(x[None]),
    "linearize": lambda f: lambda x: jax.linearize(f, x)[1](x),
    "scan": lambda f: lambda x: lax.scan(lambda c, _: (c, jax.grad(f)(c)), x, None, 2)[1],
}


@pytest.mark.parametrize("derivative", DERIVATIVES)
@pytest.mark.parametrize("several", [False, True])
def test_no_derivative_misses_an_error(derivative, several, x64):
    """Where the value is not computed, and where a print cuts the function in two."""

    def f(x):
        y = in_while(x)
        if several:
            jax.debug.callback(lambda _: None, y)
        return jnp.sum(jnp.sin(y))

    g = jax.jit(DERIVATIVES[derivative](pb.bridge(f)))
    assert message_of(lambda: g(FINE)) is None
    assert message_of(lambda: g(WRONG[2])) == "large in a while loop"


def test_the_largest_number_of_a_batch_is_raised(x64):
    g = jax.jit(jax.vmap(pb.bridge(before_and_after)))
    # One item fails at first, the other one at last.
    assert message_of(lambda: g(np.stack([WRONG[0], 0 * FINE + 1.9]))) == "large at first"
    assert message_of(lambda: g(np.stack([FINE, FINE]))) is None


def test_no_loop_goes_on_behind_an_error():
    """With this step it would never end."""

    @pb.bridge
    def integral(step):
        step = eqx.error_if(step, step <= 0, "the step is not positive")
        return lax.while_loop(lambda state: state[0] < 1, lambda s: (s[0] + step, s[1] * 0.9), (0.0, 1.0))[1]

    assert jnp.isfinite(integral(0.25))
    assert message_of(lambda: integral(0.0)) == "the step is not positive"
    assert message_of(lambda: jax.jit(integral)(-1.0)) == "the step is not positive"


def test_nothing_is_printed_behind_an_error():
    printed = []

    @pb.bridge
    def shown(x):
        x = eqx.error_if(x, x < 0, "negative")
        jax.debug.callback(lambda y: printed.append(float(y)), 2 * x)
        return jnp.sin(x)

    shown(1.0)
    jax.effects_barrier()
    assert printed == [2.0]
    assert message_of(lambda: shown(-1.0)) == "negative"
    jax.effects_barrier()
    assert printed == [2.0]


def test_an_error_of_what_nobody_uses_is_none():
    @pb.bridge
    def unused(x):
        eqx.error_if(x, x > 0, "positive")
        return jnp.sin(x)

    assert jnp.isfinite(unused(1.0))


def test_the_stack_of_filter_jit():
    with pytest.raises(eqx.EquinoxRuntimeError, match="large in a while loop"):
        eqx.filter_jit(pb.bridge(in_while))(WRONG[2])


def test_rules_of_packages_can_be_kept(x64):
    kept = primitives_in(jax.make_jaxpr(pb.bridge(in_while, package_rules=True))(FINE).jaxpr)
    assert "while" in kept and "while" not in primitives_in(jax.make_jaxpr(pb.bridge(in_while))(FINE).jaxpr)


@pytest.mark.parametrize("execute", ["julia", "xla"])
def test_errors_by_each_execution(execute, x64):
    g = pb.bridge(in_nested_loops, execute=execute)
    assert_agree(g(FINE), in_nested_loops(FINE), execute)
    assert message_of(lambda: g(WRONG[2])) == "large in nested loops"
