"""Tests of the tester: functions that are wrong in one way each, of which the harness must tell."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agreement import assert_agree
from casekit import Case, real
from harness import check

import pybridge as pb
from pybridge.runtime import evaluation, transforms

FACTOR = 1 + 1e-9


def wrong(f, name="wrong", reference=None):
    return Case(name, "program", f, (real(0.3, 1),), "f64", (0,), reference=reference)


def sine(of_value: float, of_derivative: float):
    """The sine, of which the value and the derivative have each a factor."""

    @jax.custom_jvp
    def f(x):
        return jnp.sin(x) * of_value

    f.defjvp(lambda primals, tangents: (f(*primals), jnp.cos(primals[0]) * of_derivative * tangents[0]))
    return f


WRONG = {"value": sine(FACTOR, 1), "derivative": sine(1, FACTOR)}


def seen(match: str | None = None) -> pytest.RaisesGroup:
    """That the harness reports one case, which fails with such a message."""
    return pytest.RaisesGroup(pytest.RaisesExc(AssertionError, match=match))


def test_the_harness_passes_what_is_right():
    check([wrong(lambda x: jnp.sin(x) * x)])


@pytest.mark.parametrize("part, named", [("value", "value"), ("derivative", "[hj]vp")])
def test_a_difference_in_the_ninth_digit_is_seen(part, named):
    with seen(f"{named}.* off by"):
        check([wrong(WRONG[part], reference=sine(1, 1))])


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
    with seen(f"{name}, in Julia"):
        check([wrong(jnp.sin)])


def test_a_changed_input_is_seen(monkeypatch):
    evaluate = evaluation.evaluate

    def careless(program, *arrays):
        results = evaluate(program, *arrays)
        arrays[0].setflags(write=True)
        arrays[0].ravel()[0] += 1
        return results

    monkeypatch.setattr(evaluation, "evaluate", careless)
    with seen():
        check([wrong(jnp.sin)])


def test_all_failures_are_reported_together():
    with pytest.raises(ExceptionGroup, match="2 of 3 cases") as e:
        first, second = (wrong(f, name, sine(1, 1)) for name, f in WRONG.items())
        check([first, wrong(jnp.sin), second])
    assert [x.__notes__ for x in e.value.exceptions] == [["in the case value"], ["in the case derivative"]]


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
