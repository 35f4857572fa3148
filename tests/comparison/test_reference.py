"""The reference where XLA compiles a function wrongly: JAX one operation at a time decides."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pybridge as pb
from pybridge.comparison._problem import problem
from pybridge.comparison._reference import by_operation, exact

X = jnp.linspace(0.1, 0.9, 5)


def smooth(x):
    return jnp.sum(jnp.sin(x) * x)


def chaotic(x):
    """The logistic map, which doubles an error in each trip."""
    return jax.lax.fori_loop(0, 40, lambda _, x: 3.99 * x * (1 - x), x)


def permuted(x, first, second):
    """A gather of what is overwritten, which XLA fuses with the update in place (docs/fuzz.md)."""
    y = jnp.sin(x)[first]
    return y.at[32:].set(y[32:][second])


def test_the_two_are_one_where_xla_is_right():
    task = problem(smooth, (X,), 0)
    assert by_operation(task, exact(task)) is None


def test_rounding_that_the_function_magnifies_is_no_difference():
    task = problem(chaotic, (X,), 0)
    whole = exact(task)
    moved = replace(whole, value=whole.along(2.0**-50))  # as if XLA had rounded otherwise
    assert max(abs(moved.value[0] - whole.value[0])) > 1e-6
    assert by_operation(task, moved) is None


@pytest.mark.parametrize("stage", ["value", "jvp", "vjp"])
def test_one_operation_at_a_time_is_the_reference_where_they_differ(stage):
    task = problem(smooth, (X,), 0)
    right = exact(task)
    wrong = {stage: tuple(1.5 * y for y in getattr(right, stage))}
    if stage == "value":
        wrong["along"] = lambda h: tuple(1.5 * y for y in right.along(h))
    found = by_operation(task, replace(right, **wrong))
    np.testing.assert_allclose(getattr(found, stage)[0], getattr(right, stage)[0], rtol=1e-13)
    label = stage if stage == "value" else stage.upper()
    assert f"the {label} (5.0e-01) of JAX under jit" in found.notes[-1]


def test_jax_is_the_row_that_disagrees():
    first, second = jnp.arange(40)[::-1], jnp.array([1, 2, 3, 4, 5, 6, 7, 0])
    args = jnp.arange(40.0), first, second
    if np.allclose(jax.jit(permuted)(*args), permuted(*args), atol=1e-5):
        pytest.skip(f"XLA of JAX {jax.__version__} compiles this function rightly; that of 0.12.0.1 does not")
    result = pb.compare(permuted, *args, engines=["transpose"], repeats=0)
    assert (result["jax"].state, result["transpose"].state) == ("disagrees", "agrees")
    assert result.derivative == "right" and not result.agrees()
    assert any("XLA seems to have compiled" in note for note in result.reference.notes)
    found = result.first_disagreement()
    assert (found.mode, found.leaf) == ("value", "result") and found.error > 0.5
