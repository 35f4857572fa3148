"""Large constants in text: what a file of a Program holds."""

from __future__ import annotations

import base64
import copy
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pybridge as pb
from pybridge.ir.numerals import DTYPES


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_program_with_large_constants_goes_through_a_file(dtype, tmp_path, x64):
    bits = np.random.default_rng(0).integers(
        0, 2 if dtype == "bool" else 250, 7 * 11 * DTYPES[dtype].itemsize
    )
    table = np.frombuffer(bits.astype(np.uint8).tobytes(), DTYPES[dtype]).reshape(7, 11)
    program = pb.trace(lambda i: jnp.asarray(table)[i])(np.int32(0))
    (tmp_path / "f.program").write_text(program.to_text())
    again = pb.parse((tmp_path / "f.program").read_text())
    assert again == program and again.to_text() == program.to_text()
    assert again.call(np.int32(3))[0].tobytes() == table[3].tobytes()


def test_constants_of_bodies_and_their_derivatives():
    weights = np.linspace(0, 1, 100, dtype=np.float32)

    def f(x):
        return jax.lax.fori_loop(0, 3, lambda i, y: jnp.sin(y * weights), x).sum()

    x = np.ones(100, np.float32)
    again = pb.parse(pb.trace(f)(x).to_text())
    (gradient,) = again.vjp().call(x, np.float32(1))
    np.testing.assert_allclose(gradient, jax.grad(f)(x), rtol=1e-5)
    derivative = pb.parse(again.vjp().to_text())
    np.testing.assert_array_equal(derivative.call(x, np.float32(1))[0], gradient)


def _text() -> str:
    return pb.trace(lambda x: x + np.arange(100, dtype=np.float32))(np.zeros(100, np.float32)).to_text()


@pytest.mark.parametrize(
    "old, new, message",
    [
        ("f32[100] ", "f32[99] ", "400 bytes are no"),
        ("f32[100] ", "f32[50,2] ", "hash"),
        ("f32[100] ", "i32[100] ", "hash"),
        ("f32[100] ", "f32[<b>] ", "cannot be"),
        ("f32[100] ", "", "expected a dtype"),
        ("AAAAAAAAgD8", "AAAAAAAAgD9", "hash"),
        ("AAAAAAAAgD8", "AAAA*AAAgD8", "base64"),
        ("AAAAAAAAgD8", "AAAAAAAAgD", "base64"),
        ("data ", "data data ", "expected 'program'"),
    ],
)
def test_data_that_are_not_those_of_the_hash_are_refused(old, new, message):
    head, data = _text().split("\ndata ")
    changed = f"data {data}".replace(old, new, 1)
    assert changed != f"data {data}"
    with pytest.raises(pb.ProgramSyntaxError, match=rf"line \d+, column \d+: .*{message}"):
        pb.parse(f"{head}\n{changed}")


def test_data_given_twice_are_refused():
    with pytest.raises(pb.ProgramSyntaxError, match="given twice"):
        pb.parse(_text() + "data" + _text().split("\ndata")[1])


def test_bools_are_0_or_1():
    table = np.arange(100) % 3 == 0
    text = pb.trace(lambda i: jnp.asarray(table)[i])(np.int32(0)).to_text()
    wrong = base64.b64encode(bytes([2] * 100)).decode()
    right = base64.b64encode(table.tobytes()).decode()
    with pytest.raises(pb.ProgramSyntaxError, match="100 bytes are no bool"):
        pb.parse(text.replace(right, wrong))


def test_parts_of_programs_are_copied_and_pickled():
    program = pb.trace(lambda x: {"y": jax.lax.fori_loop(0, 3, lambda i, y: y * jnp.arange(100.0), x)})(
        np.zeros(100, np.float32)
    )
    for again in (pickle.loads(pickle.dumps(program)), copy.deepcopy(program), copy.copy(program)):
        assert again == program and again.structure == program.structure
        np.testing.assert_array_equal(again.call(np.ones(100, np.float32))["y"][:3], [0, 1, 8])
    for part in (program.inputs, program.equations, program.outputs):
        assert pickle.loads(pickle.dumps(part)) == part and copy.deepcopy(part) == part
