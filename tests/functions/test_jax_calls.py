"""Functions of JAX by addresses, as Julia calls them; julia/test/packages/jax_function.jl has Julia's end."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from ml_dtypes import bfloat16

import pybridge as pb
from pybridge.functions.jax_calls import JaxCall, Slot
from pybridge.ir.numerals import dtype_name


def call(f, template, arrays):
    return JaxCall(f, template, [(dtype_name(x.dtype), x.shape) for x in arrays])


def addresses(arrays):
    return [x.ctypes.data for x in arrays]


def values(lent):
    for address, x in lent:
        assert x.ctypes.data == address
    return [x for _, x in lent]


def loss(p, x, n, labels):
    h = jnp.tanh(p["w"] @ x + p["b"])
    return {"loss": jnp.mean(h**n), "hidden": (h, None), "count": labels + 1}


@pytest.fixture(params=[np.float32, np.float64], ids=["f32", "f64"])
def arrays(request):
    rng = np.random.default_rng(5)
    floats = [rng.normal(size=s).astype(request.param) for s in ((2, 3), (2,), (3,))]
    return [*floats, np.arange(3, dtype=np.int32)]


TEMPLATE = ({"w": Slot(0), "b": Slot(1)}, Slot(2), 3, Slot(3))


def reference(arrays):
    labels = arrays[3]
    return lambda w, b, x: loss({"w": w, "b": b}, x, 3, labels)


def test_value_and_structure(arrays):
    f = call(loss, TEMPLATE, arrays)
    dtype = dtype_name(arrays[0].dtype)
    assert f.result == f"{{ count i32[3] hidden ( {dtype}[2] none ) loss {dtype}[] }}"
    count, hidden, value = values(f.value(addresses(arrays)))
    with jax.enable_x64(True):
        expected = reference(arrays)(*arrays[:3])
    np.testing.assert_array_equal(count, [1, 2, 3])
    np.testing.assert_allclose(hidden, expected["hidden"][0], rtol=1e-6)
    np.testing.assert_allclose(value, expected["loss"], rtol=1e-6)
    assert hidden.dtype == value.dtype == arrays[0].dtype


def assert_near(found, given):
    # 1 - tanh² cancels, and XLA does not compile it alike within another function.
    np.testing.assert_allclose(found, given, rtol=1e-5, atol=1e-6 * abs(given).max())


def test_derivatives(arrays):
    rng = np.random.default_rng(6)
    f = call(loss, TEMPLATE, arrays)
    tangents = [rng.normal(size=x.shape).astype(x.dtype) for x in arrays[:3]]
    cotangents = [rng.normal(size=s).astype(arrays[0].dtype) for s in ((2,), ())]

    def floats(w, b, x):
        y = reference(arrays)(w, b, x)
        return y["hidden"][0], y["loss"]

    with jax.enable_x64(True):
        _, pushed = jax.jvp(floats, tuple(arrays[:3]), tuple(tangents))
        expected = jax.vjp(floats, *arrays[:3])[1](tuple(map(jnp.asarray, cotangents)))
    y, ẏ = f.jvp(addresses(arrays), addresses(tangents))
    assert len(y) == 3
    for found, given in zip(values(ẏ), pushed, strict=True):
        assert_near(found, given)
    copies = [x.copy() for x in arrays]
    y, pull = f.vjp(addresses(copies))
    for x in [*copies, *values(y)]:
        x[...] = 0  # the pullback has what it needs
    for _ in range(2):
        for found, given in zip(values(pull(addresses(cotangents))), expected, strict=True):
            assert_near(found, given)


def test_arguments_are_not_copied_and_results_are_new():
    x = np.zeros(5000)
    x = x if x.ctypes.data % 64 == 0 else np.zeros(5008)[(64 - x.ctypes.data % 64) // 8 :][:5000]
    f = call(lambda x: (x, x, x + 1), (Slot(0),), [x])
    first, second, third = values(f.value([x.ctypes.data]))
    assert len({y.ctypes.data for y in (x, first, second, third)}) == 4
    np.testing.assert_array_equal(third, x + 1)


def test_empty_arrays_and_half_precision():
    x, y = np.zeros((0, 3)), np.arange(4).astype(bfloat16)
    f = call(lambda x, y: (x * 2, y * y), (Slot(0), Slot(1)), [x, y])
    empty, squares = values(f.value(addresses([x, y])))
    assert empty.shape == (0, 3) and squares.dtype == bfloat16
    np.testing.assert_array_equal(squares.astype(float), [0, 1, 4, 9])


def test_as_a_program(arrays, tmp_path):
    f = call(loss, TEMPLATE, arrays)
    f.save(tmp_path / "f.pybridge")
    program = pb.load(tmp_path / "f.pybridge")
    for found, given in zip(program.call(*arrays), values(f.value(addresses(arrays))), strict=True):
        assert_near(found, given)


def test_exceptions_are_the_functions():
    def fails(x):
        raise ZeroDivisionError("no such thing")

    with pytest.raises(ZeroDivisionError, match="no such thing"):
        call(fails, (Slot(0),), [np.zeros(3)])
