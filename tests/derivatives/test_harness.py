"""Tests of the tester: functions that are wrong in one way each, of which the harness must tell."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agreement import assert_agree
from casekit import Case, real
from harness import check, check_all

import pybridge as pb
from pybridge import transforms

FACTOR = 1 + 1e-9


def wrong(f, name="wrong"):
    return Case(name, "program", f, (real(0.3, 1),), "f64", (0,))


def drifting(value: bool):
    """A function whose value, or else whose derivative, is another at every tracing after the first three."""
    traced = 0

    @jax.custom_jvp
    def f(x, factor):
        return jnp.sin(x) * (factor if value else 1)

    @f.defjvp
    def _rule(primals, tangents):
        x, factor = primals
        return f(x, factor), jnp.cos(x) * factor * tangents[0]

    def g(x):
        nonlocal traced
        traced += 1
        return f(x, FACTOR ** (traced > 3))

    return g


def test_the_harness_passes_what_is_right():
    check(wrong(lambda x: jnp.sin(x) * x))


@pytest.mark.parametrize("value", [True, False])
def test_a_difference_in_the_ninth_digit_is_seen(value):
    with pytest.raises(AssertionError, match="off by"):
        check(wrong(drifting(value)))


@pytest.mark.parametrize("name", ["jvp", "vjp"])
def test_a_program_that_is_wrong_is_seen(name, monkeypatch):
    right = getattr(transforms, name)

    def scaled(program, active=None, **options):
        return right(
            pb.trace(lambda *xs: jax.tree.map(lambda y: y * FACTOR, program.to_jax()(*xs)))(
                *(jax.ShapeDtypeStruct(t.shape, np.float64) for t in program.input_types)
            ),
            active,
            **options,
        )

    monkeypatch.setattr(transforms, name, scaled)
    with pytest.raises(AssertionError, match=f"{name}, in Julia"):
        check(wrong(jnp.sin))


def test_a_changed_input_is_seen(monkeypatch):
    evaluate = transforms.evaluate

    def careless(program, *arrays):
        results = evaluate(program, *arrays)
        arrays[0].setflags(write=True)
        arrays[0].ravel()[0] += 1
        return results

    monkeypatch.setattr(transforms, "evaluate", careless)
    with pytest.raises(AssertionError):
        check(wrong(jnp.sin))


def test_all_failures_are_reported_together():
    with pytest.raises(ExceptionGroup, match="2 of 3 cases") as e:
        check_all([wrong(drifting(True), "first"), wrong(jnp.sin), wrong(drifting(False), "second")], check)
    assert [x.__notes__ for x in e.value.exceptions] == [["in the case first"], ["in the case second"]]


@pytest.mark.parametrize(
    "found, expected",
    [
        (np.float64(1 + 1e-9), np.float64(1)),
        (np.float32(1.001), np.float32(1)),
        (np.float32(1), np.float64(1)),
        (np.zeros((2, 1)), np.zeros(2)),
        (np.float64("nan"), np.float64(1)),
        (np.float64("inf"), np.float64("-inf")),
        (np.int32(1), np.int32(2)),
        ([1.0, 2.0], [1.0]),
    ],
)
def test_agreement_is_strict(found, expected):
    with pytest.raises(AssertionError):
        assert_agree(found, expected, "x")
    assert_agree(expected, expected, "x")
