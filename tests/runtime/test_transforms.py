"""The transforms as Python offers them: options, refusals, and what they leave behind for debugging."""

import re

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import pybridge as pb

X, A = np.linspace(0.1, 1, 6, dtype=np.float32).reshape(3, 2), np.array([1.5, 2.5], np.float32)


def seed(x, a):
    return jnp.sin(a * x) ** 2 / a


@pytest.fixture(scope="module")
def program():
    return pb.trace(seed)(X, A)


def test_active_inputs_choose_the_tangents(program):
    assert len(program.jvp().inputs) == 4
    assert len(program.jvp(active=[1]).inputs) == 3
    assert program.vjp(active=[1]).output_types == (program.input_types[1],)


def test_vjp_gives_the_value_too_when_asked(program):
    value, (dx, da) = program.vjp(value=True).call(X, A, np.ones_like(X))
    np.testing.assert_allclose(value, seed(X, A), rtol=1e-6)
    assert (dx.shape, da.shape) == (X.shape, A.shape)


def test_linearize_says_how_its_parts_fit(program):
    lin = program.linearize(active=[0])
    assert lin.has_tangent == (True,)
    assert len(lin.known.outputs) == 1 + lin.residuals
    assert len(lin.linear.inputs) == lin.residuals + 1
    _, residuals = lin.known.call(X, A)
    tangent = lin.linear.call(residuals, np.ones_like(X))
    np.testing.assert_allclose(tangent, np.sin(2 * A * X), rtol=1e-5)


def test_transposing_the_linear_part_is_the_vjp(program):
    lin = program.linearize()
    linear_inputs = range(lin.residuals, lin.residuals + 2)
    _, residuals = lin.known.call(X, A)
    _, *by_hand = lin.linear.transpose(linear=linear_inputs).call(residuals, np.ones_like(X))
    at_once = program.vjp().call(X, A, np.ones_like(X))
    for u, v in zip(by_hand, at_once, strict=True):
        np.testing.assert_allclose(u, v, rtol=1e-6)


def test_what_is_not_linear_cannot_be_transposed(program):
    with pytest.raises(pb.UnsupportedPrimitive, match="transpose") as refusal:
        program.transpose(linear=[0])
    assert refusal.value.primitive == "sin" or refusal.value.primitive == "integer_pow"
    assert "test_transforms.py" in refusal.value.source


def test_inputs_that_do_not_exist_are_refused(program):
    with pytest.raises(pb.ArgumentError, match="no input 7; it has 2"):
        program.jvp(active=[7])


def test_integer_inputs_have_no_derivative():
    p = pb.trace(lambda x, n: x * n)(X, np.int32(2))
    assert len(p.vjp().outputs) == 1
    with pytest.raises(pb.NotDifferentiable, match=r"input 1 .* i32\[\]"):
        p.vjp(active=[1])


@pytest.mark.parametrize("wrong", [(X,), (X, A, A), (X.astype(np.float64), A), (X.T, A), ("x", A)])
def test_call_refuses_arguments_that_do_not_fit(program, wrong):
    with pytest.raises(pb.PyBridgeError):
        program.call(*wrong)
    np.testing.assert_allclose(program.call(X, A), seed(X, A), rtol=1e-6)  # the session goes on


def test_every_program_and_answer_can_be_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("PYBRIDGE_DUMP", str(tmp_path / "dump"))
    p = pb.trace(lambda x: jnp.tanh(x) * 3.25)(X)
    v = p.vjp()
    (request,), (answer,) = (
        sorted((tmp_path / "dump").glob(f"*-vjp-*.{kind}.txt")) for kind in ("in", "out")
    )
    assert pb.parse(request.read_text().partition("\n")[2]) == p
    assert pb.parse(answer.read_text()) == v


def test_a_bound_on_the_trips_lets_reverse_mode_through_a_traced_loop():
    def halve(x):
        return lax.while_loop(lambda y: y > 0.3, lambda y: y * 0.5, x)

    unbounded, bounded = pb.trace(halve)(1.0), pb.trace(halve, while_bound=4)(1.0)
    found = [re.findall(r"while_passes.*bound=(\w+)", str(p.vjp())) for p in (unbounded, bounded)]
    assert found == [["none"], ["4"]]
    assert bounded.vjp().call(1.0, 1.0) == unbounded.vjp().call(1.0, 1.0) == (0.25,)
    with pytest.raises(pb.UnknownOption, match="while_bound"):
        pb.trace(halve, while_bound=-1)
