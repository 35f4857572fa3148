"""The user's own derivative rules and rematerialisation are kept, through Julia and through vmap.

Rules here are wrong by a factor on purpose: only so can one see that they ran.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agreement import assert_agree

import pybridge as pb
from pybridge.ir.program import Program

X = np.random.default_rng(7).uniform(0.2, 1, (3, 4))
V = np.random.default_rng(8).uniform(-1, 1, (3, 4))


@jax.custom_jvp
def tripled(x):
    return jnp.sin(x)


@tripled.defjvp
def _tripled_jvp(primals, tangents):
    return tripled(primals[0]), 3 * jnp.cos(primals[0]) * tangents[0]


@jax.custom_vjp
def pulled(x, n):
    return jnp.sin(x) * n


pulled.defvjp(
    lambda x, n: (pulled(x, n), (x, n)),
    lambda res, ct: (3 * jnp.cos(res[0]) * res[1] * ct, None),
)


@jax.custom_vjp
def from_both(x, y):
    return x * y, x + y


from_both.defvjp(
    lambda x, y: (from_both(x, y), (x, y)), lambda res, ct: (5 * ct[0] * res[1], 7 * ct[1] * res[0])
)


def twice(x):
    return pulled(x, 2)


def both(x):
    return sum(from_both(x, 2 * x))


def total(f):
    return lambda x: jnp.sum(f(x) * V)


RULES = {"custom_jvp": (tripled, 3.0), "custom_vjp": (twice, 6.0)}


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("jit", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize("engine", ["transpose", "jax"])
def test_the_rule_runs(name, jit, engine, x64):
    f, factor = RULES[name]
    gradient = jax.grad(total(pb.bridge(f, engine=engine)))
    found = (jax.jit(gradient) if jit else gradient)(X)
    assert_agree(found, factor * np.cos(X) * V, name)


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("engine", ["transpose", "jax"])
def test_the_rule_runs_after_vmap(name, engine, x64):
    f, factor = RULES[name]
    expected = factor * np.cos(X) * V
    g = pb.bridge(f, engine=engine)
    assert_agree(jax.grad(total(jax.vmap(g)))(X), expected, "grad of vmap")
    assert_agree(jax.grad(total(jax.vmap(jax.vmap(g))))(X), expected, "grad of vmap of vmap")
    assert_agree(jax.jit(jax.vmap(jax.vmap(jax.grad(g))))(X), factor * np.cos(X), "vmap of grad")
    assert_agree(jax.grad(lambda x: total(jax.vmap(jax.jit(g)))(x))(X), expected, "through jit")


@pytest.mark.parametrize("name", RULES)
def test_the_rule_runs_in_loops_and_checkpoints(name, x64):
    f, _ = RULES[name]

    def loop(f):
        return lambda x: jax.lax.scan(lambda c, v: (f(c) * v, f(v)), x[0], x)[1].sum()

    for build in (
        loop,
        lambda f: jax.checkpoint(total(f)),
        lambda f: lambda x: jax.lax.cond(x[0, 0] > 0, f, jnp.cos, x).sum(),
    ):
        assert_agree(jax.grad(pb.bridge(build(f)))(X), jax.grad(build(f))(X), "grad")
        assert_agree(
            jax.grad(lambda x, b=build: jax.vmap(pb.bridge(b(f)))(x[None])[0])(X),
            jax.grad(build(f))(X),
            "vmap",
        )


@pytest.mark.parametrize("order", [2, 3])
def test_the_rule_runs_at_higher_orders(order, x64):
    def nth(f):
        for _ in range(order):
            f = jax.grad(f)
        return f

    for f, _ in RULES.values():
        assert_agree(nth(pb.bridge(f))(0.7), nth(f)(0.7), f"order {order}")


def test_forward_over_reverse_of_a_rule_that_calls_its_function(x64):
    """JAX refuses: `pulled` meets forward mode inside its own rule, though nothing needs that tangent."""
    hvp = jax.jit(lambda x, dx: jax.jvp(jax.grad(total(pb.bridge(twice))), (x,), (dx,))[1])
    assert_agree(hvp(X, V), -6 * np.sin(X) * V * V, "hvp")
    with pytest.raises(TypeError, match="forward-mode"):
        jax.jvp(jax.grad(total(twice)), (X,), (V,))


# Rematerialisation


def count(program: Program, op: str) -> int:
    """Equations of that primitive, those of nested Programs included."""
    nested = (count(body, op) for eq in program.equations for body in eq.bodies)
    return sum(eq.op == op for eq in program.equations) + sum(nested)


def wave(x):
    return jnp.sin(jnp.sin(jnp.sin(x)))


def test_the_backward_pass_recomputes():
    plain, saved = (pb.trace(f)(jnp.float32(1)).vjp(optimize=True) for f in (wave, jax.checkpoint(wave)))
    assert (count(plain, "sin"), count(plain, "cos")) == (2, 3)
    assert count(saved, "cos") == 3
    assert count(saved, "sin") >= 2  # once in the remat's body; the value is not asked for
    both = pb.trace(jax.checkpoint(wave))(jnp.float32(1)).vjp(value=True, optimize=True)
    assert count(both, "sin") == 3 + 2 and count(both, "remat") == 1


def test_no_residual_leaves_a_checkpoint():
    lin = pb.trace(jax.checkpoint(wave))(jnp.float32(1)).linearize(optimize=True)
    assert lin.residuals == 1 and lin.known.outputs[1] == lin.known.inputs[0]
    assert pb.trace(wave)(jnp.float32(1)).linearize(optimize=True).residuals >= 3


def test_a_checkpoint_survives_vmap(x64):
    batched = []

    def sums(f):
        return lambda x: jax.vmap(f)(x).sum()

    g = pb.bridge(jax.checkpoint(wave))
    jaxpr = jax.make_jaxpr(sums(g))(X)
    (batched,) = [eqn.params["program"] for eqn in jaxpr.eqns if str(eqn.primitive) == "julia_call"]
    assert count(batched, "remat") == 1 and count(batched, "optimization_barrier") == 0
    assert count(batched.vjp(value=True, optimize=True), "sin") == 3 + 2
    assert_agree(jax.grad(sums(g))(X), jax.grad(sums(wave))(X), "grad")


def test_what_is_emitted_is_not_merged_by_xla():
    """XLA sees the recomputation behind a barrier, so that it does not find the common subexpressions."""
    p = pb.trace(jax.checkpoint(wave))(jnp.float32(1)).vjp(value=True)
    text = jax.jit(p.to_jax()).lower(jnp.float32(1), jnp.float32(1)).as_text()
    assert "optimization_barrier" in text
    merged = pb.trace(functools.partial(jax.checkpoint, prevent_cse=False)(wave))(jnp.float32(1)).vjp(
        value=True
    )
    assert (
        "optimization_barrier" not in jax.jit(merged.to_jax()).lower(jnp.float32(1), jnp.float32(1)).as_text()
    )
