"""Symbolic dimensions, from jax.export into Programs and back."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

from pybridge.errors import ArgumentError, ProgramTypeError
from pybridge.frontend.dimensions import Dimensions
from pybridge.frontend.tracing import trace
from pybridge.ir.parser import parse
from pybridge.ir.types import SymDim, TensorType


def spec(text: str, dtype=np.float32) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(export.symbolic_shape(text), dtype)


def mixture(x):
    doubled = jnp.concatenate([x, x])
    return doubled[1:], x[::2], jnp.arange(x.shape[0] // 2), x.mean(), doubled.reshape(-1)


@pytest.mark.parametrize("n", [1, 4, 7])
def test_one_program_serves_every_size(n):
    program = trace(mixture)(spec("b, 3"))
    assert program.inputs[0].type == TensorType("f32", (SymDim("b"), 3))
    assert any(eq.op == "dim_size" for eq in program.equations)
    x = np.random.default_rng(n).standard_normal((n, 3)).astype(np.float32)
    for program_ in (program, parse(str(program))):
        for y, z in zip(mixture(x), program_.to_jax()(x), strict=True):
            np.testing.assert_allclose(z, y, rtol=1e-6)


def test_exported_with_symbolic_sizes_it_serves_every_size():
    program = trace(mixture)(spec("b, 3"))
    exported = export.export(jax.jit(program.to_jax()), platforms=("cpu", "cuda", "tpu"))(spec("n, 3"))
    assert [str(a.shape) for a in exported.out_avals][:2] == ["(2*n - 1, 3)", "(floordiv(n + 1, 2), 3)"]
    x = np.ones((5, 3), np.float32)
    for y, z in zip(mixture(x), exported.call(x), strict=True):
        np.testing.assert_allclose(z, y, rtol=1e-6)


def test_a_program_may_be_retraced_at_another_expression():
    program = trace(lambda x: jnp.concatenate([x, x]))(spec("b"))
    again = trace(program.to_jax())(spec("2*c + 1"))
    assert again.output_types == (TensorType("f32", (SymDim("4*c + 2"),)),)


@pytest.mark.parametrize(
    "text, sizes, expected",
    [
        ("2*b + 1", {"b": 3}, 7),
        ("b^2 - a", {"b": 3, "a": 2}, 7),
        ("floordiv(b, 2) + mod(b, 2)", {"b": 7}, 4),
        ("max(a, b) - min(a, b)", {"a": 2, "b": 9}, 7),
        ("-1*a + b", {"a": 2, "b": 9}, 7),
    ],
)
def test_expressions_have_the_values_jax_gives_them(text, sizes, expected):
    dims = Dimensions([TensorType("f32", (SymDim(n),)) for n in sizes], [(v,) for v in sizes.values()])
    assert dims[SymDim(text)] == expected


def test_a_size_is_found_inside_a_linear_expression():
    dims = Dimensions([TensorType("f32", (SymDim("2*b + 1"), 4))], [(7, 4)])
    assert dims[SymDim("b")] == 3


@pytest.mark.parametrize(
    "type_, shape",
    [
        (TensorType("f32", (SymDim("b"), SymDim("b"))), (2, 3)),
        (TensorType("f32", (SymDim("2*b"),)), (3,)),
        (TensorType("f32", (SymDim("b*c"),)), (6,)),
        (TensorType("f32", (3,)), (4,)),
        (TensorType("f32", (3,)), (3, 1)),
    ],
)
def test_shapes_that_contradict_or_leave_open(type_, shape):
    with pytest.raises(ArgumentError):
        Dimensions([type_], [shape])[SymDim("b")]


@pytest.mark.parametrize(
    "text", ["__import__('os')", "b.c", "b[0]", "1 if b else 2", "9^9^9", "b +", "(" * 300, "f(b)", "1.5"]
)
def test_what_is_no_expression_is_refused_and_never_run(text):
    dims = Dimensions([TensorType("f32", (SymDim("b"),))], [(3,)])
    with pytest.raises((ProgramTypeError, ArgumentError)):
        dims[SymDim(text)]
