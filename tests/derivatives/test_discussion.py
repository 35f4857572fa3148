"""Two ways to write one function should cost the same gradient, which JAX's own tracing does not give.

The functions are those of JAX's discussion of make_jaxpr: f1 as one would write it, f2 with common
subexpressions taken out by hand.
"""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agreement import assert_agree

import pybridge as pb
from pybridge.ir.program import Program
from pybridge.ir.types import Literal


def f1(x1, x2):
    return (x1 / x2 - jnp.exp(x2)) * (jnp.sin(x1 / x2) + x1 / x2 - jnp.exp(x2))


def f2(x1, x2):
    a = x1 / x2
    b = jnp.exp(x2)
    c = jnp.sin(a)
    d = a - b
    e = c + d
    return d * e


def with_fixed(p: Program, number: float) -> Program:
    """The Program with its last input, a scalar, fixed."""
    *inputs, last = p.inputs
    fixed = Literal(number, last.type.dtype)
    equations = [
        replace(eq, inputs=tuple(fixed if a == last else a for a in eq.inputs)) for eq in p.equations
    ]
    outputs = tuple(fixed if a == last else a for a in p.outputs)
    return Program(p.name, tuple(inputs), tuple(equations), outputs, p.constants)


@pytest.mark.parametrize("value", [False, True], ids=["grad", "value_and_grad"])
def test_both_gradients_have_the_same_number_of_equations(value, capsys):
    x = jnp.float32(1.3), jnp.float32(0.7)
    # Optimised first: two cotangents of what is computed twice are not taken out of products later.
    pulls = [pb.trace(f)(*x).optimize().vjp(value=value) for f in (f1, f2)]
    grads = [with_fixed(p, 1.0).optimize() for p in pulls]
    pulls = [p.optimize() for p in pulls]
    transform = jax.value_and_grad if value else jax.grad
    jaxprs = [jax.make_jaxpr(transform(f, (0, 1)))(*x) for f in (f1, f2)]
    counts = {
        "VJP Programs": [p.equation_count() for p in pulls],
        "gradient Programs": [p.equation_count() for p in grads],
        "jax's jaxprs": [len(j.eqns) for j in jaxprs],
    }
    with capsys.disabled():
        print(f"\nequations for f1 and f2: {counts}")
    for first, second in (counts["VJP Programs"], counts["gradient Programs"]):
        assert first == second < min(counts["jax's jaxprs"])
    for p, f in zip(grads, (f1, f2), strict=True):
        expected = jax.tree.leaves(transform(f, (0, 1))(*x))
        assert_agree(p.call(*x), expected, "gradient")


def seed(x, a):
    return jnp.sin(a * x) ** 2 / a


def test_two_transposed_broadcasts_become_one_reduction():
    x, a = np.ones((2, 3, 4), np.float32), np.ones(4, np.float32)
    p = pb.trace(seed)(x, a).vjp()
    q = p.optimize()
    assert [eq.op for eq in p.equations].count("reduce_sum") == 2
    assert _without_sources(q) == GOLDEN


def _without_sources(p: Program) -> str:
    return str(replace(p, equations=tuple(replace(eq, source="") for eq in p.equations)))


GOLDEN = """\
pybridge 1
program vjp_seed(%0: f32[2,3,4], %1: f32[4], %2: f32[2,3,4]) {
  # %0 x, %1 a, %2 ct
  %3: f32[2,3,4] = broadcast_in_dim %1 {shape=[2, 3, 4], dims=[2]}
  %4: f32[2,3,4] = mul %3 %0
  %5: f32[2,3,4] = sin %4
  %6: f32[2,3,4] = cos %4
  %7: f32[2,3,4] = integer_pow %5 {y=2}
  %8: f32[2,3,4] = mul 2.0:f32 %5
  %9: f32[2,3,4] = div %7 %3
  %10: f32[4] = div 1.0:f32 %1
  %11: f32[2,3,4] = broadcast_in_dim %10 {shape=[2, 3, 4], dims=[2]}
  %12: f32[2,3,4] = mul %9 %11
  %13: f32[2,3,4] = mul %2 %12
  %14: f32[2,3,4] = div %2 %3
  %15: f32[2,3,4] = mul %14 %8
  %16: f32[2,3,4] = mul %15 %6
  %17: f32[2,3,4] = mul %3 %16
  %18: f32[2,3,4] = mul %16 %0
  %19: f32[2,3,4] = sub %18 %13
  %20: f32[4] = reduce_sum %19 {axes=[0, 1]}
  return %17 %20  # x_bar, a_bar
}
"""


def test_the_gradient_of_the_seed_function_is_right(x64):
    rng = np.random.default_rng(0)
    x, a, ct = rng.uniform(-1, 1, (2, 3, 4)), rng.uniform(0.5, 2, 4), rng.standard_normal((2, 3, 4))
    expected = jax.vjp(seed, x, a)[1](jnp.asarray(ct))
    q = pb.trace(seed)(x, a).vjp().optimize()
    assert_agree(q.call(x, a, ct), expected, "in Julia")
    assert_agree(q.to_jax()(x, a, ct), expected, "as lax operations")
