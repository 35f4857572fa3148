"""Results in range and exact as written: long sums, extreme divisors, integer exponents, narrow counters."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agreement import assert_agree
from jax import lax

import pybridge as pb


@pytest.fixture(params=["julia", "xla"])
def bridge(request):
    return lambda f: pb.bridge(f, execute=request.param)


@pytest.mark.parametrize("n", [100_000, 1_000_000])
def test_a_running_sum_has_the_error_of_sums_by_blocks(bridge, n):
    x = np.full(n, 0.1, np.float32)
    expected = np.cumsum(x, dtype=np.float64)
    assert np.max(np.abs(bridge(jnp.cumsum)(x) / expected - 1)) < 1e-6
    assert np.max(np.abs(bridge(lambda x: lax.cumsum(x, reverse=True))(x)[::-1] / expected - 1)) < 1e-6
    total = bridge(lax.cumlogsumexp)(np.zeros(n, np.float32))[-1]
    np.testing.assert_allclose(total, np.log(n), rtol=1e-6)


@pytest.mark.parametrize("size", [1e20, 1e-20, 8e37])
def test_shares_of_a_row_have_gradients_whatever_the_size(bridge, size):
    weights = np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32)
    x = (size * np.array([[1, 1, 1], [1, 0.5, 1], [0.25, 1, 0.5], [1, 1, 0.75]])).astype(np.float32)

    def f(x):
        return jnp.sum(weights * (x / x.sum(1, keepdims=True)))

    wide = x.astype(np.float64)
    total = wide.sum(1, keepdims=True)
    expected = weights / total - np.sum(weights * wide, 1, keepdims=True) / total**2
    for gradient in (jax.grad(bridge(f))(x), jax.jit(jax.grad(bridge(f)))(x)):
        # XLA's subnormal numbers are zero.
        error = np.abs(np.asarray(gradient, np.float64) - expected)
        assert np.all(error <= 1e-5 * np.max(np.abs(expected)) + np.finfo(np.float32).tiny)


def test_quotients_of_complex_numbers_are_scaled(bridge):
    z, w = np.full(2000, 1e30 + 1e20j, np.complex64), np.full(2000, 1e10 + 1j, np.complex64)
    quotient = bridge(lambda z, w: z / w)
    np.testing.assert_allclose(quotient(z, w), z.astype(complex) / w, rtol=1e-6)
    slope = jax.grad(lambda z: jnp.sum(quotient(z, w)).real)(z)
    np.testing.assert_allclose(slope, 1 / w.astype(complex), rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.uint8])
def test_derivatives_of_a_power_with_an_integer_exponent(bridge, dtype):
    def power(x, n):
        return x**n

    for order, n in ((2, 1), (3, 2), (3, 1), (2, 0), (1, 0), (1, 1), (2, 2), (3, 3)):
        derivative = bridge(power)
        for _ in range(order):
            derivative = jax.grad(derivative)
        expected = {1: 1, 2: 2, 3: 6}[order] if n == order else 0
        assert derivative(0.0, dtype(n)) == expected


@pytest.mark.parametrize(("dtype", "far"), [(np.float32, 60), (np.float64, 600)])
def test_derivatives_of_functions_that_are_nearly_constant_or_nearly_infinite(bridge, dtype, far):
    with jax.enable_x64(dtype is np.float64):
        x = np.array([far / 4, far, 1.1 * far], dtype)
        rest = np.exp(-x.astype(np.longdouble))  # log(sigmoid(x)) is -rest but for its square
        log_sigmoid, rtol = bridge(jax.nn.log_sigmoid), 8 * far * np.finfo(dtype).eps
        for order, expected in enumerate((-rest, rest, -rest)):
            np.testing.assert_allclose(_derivative(log_sigmoid, order)(x), expected.astype(dtype), rtol=rtol)
        np.testing.assert_allclose(_derivative(log_sigmoid, 1)(-x), (1 - rest).astype(dtype), rtol=rtol)
        for order in (1, 2, 3):
            slopes = _derivative(bridge(jax.nn.sigmoid), order)
            np.testing.assert_allclose(slopes(x), (-1) ** (order + 1) * rest.astype(dtype), rtol=rtol)
            np.testing.assert_allclose(slopes(-x), rest.astype(dtype), rtol=rtol)
        largest = np.array([np.finfo(dtype).maxexp - 0.1], dtype)
        exact = np.exp2(largest.astype(np.longdouble))
        for order in range(4):
            expected = (exact * np.log(np.longdouble(2)) ** order).astype(dtype)
            np.testing.assert_allclose(
                _derivative(bridge(jnp.exp2), order)(largest),
                expected,
                rtol=64 * largest[0] * np.finfo(dtype).eps,
            )


def _derivative(f, order):
    """Of a function of arrays that treats each element by itself."""
    for _ in range(order):
        f = jax.grad(lambda x, f=f: jnp.sum(f(x)))
    return f


@pytest.mark.parametrize(("dtype", "x", "y"), [(np.float16, 4e4, 5e4), (np.float32, 2e38, 3e38)])
def test_terms_are_not_added_before_what_makes_them_smaller(bridge, dtype, x, y):
    x, y, w = (np.full(3, v, dtype) for v in (x, y, 0.25))
    tangent = np.full(3, -0.3532, dtype)
    _, slope = jax.jvp(bridge(lambda w: x * w + y * w), (w,), (tangent,))
    expected = (x.astype(float) + y) * tangent
    np.testing.assert_allclose(np.asarray(slope, float), expected, rtol=1e-3)


def test_a_counter_that_wraps_around(bridge):
    def loop(x):
        start = jnp.int8(0), x
        return lax.while_loop(lambda c: c[0] < 120, lambda c: (c[0] + jnp.int8(50), c[1] * x), start)

    def f(x):
        return loop(x)[1]

    count, i = 0, np.int8(0)
    while i < 120:
        count, i = count + 1, np.int8((int(i) + 50 + 128) % 256 - 128)
    x = np.float32(1.1)
    assert_agree(bridge(f)(x), f(x), "value")
    assert_agree(jax.grad(bridge(f))(x), np.float32((count + 1) * 1.1**count), "gradient")
    # XLA, told where it starts, has another value for it in both.
    (last, _), _ = jax.jit(lambda x: jax.jvp(bridge(loop), (x,), (x,)))(x)
    lasts, _ = jax.jit(jax.vmap(bridge(loop)))(np.full(3, x))
    assert last == i and np.all(lasts == i)


def test_a_matrix_with_nan_has_no_factor(bridge):
    x = np.array([[np.nan, 0.5, 0], [0.5, 1, 0], [0, 0, 1]], np.float32)
    factor = np.asarray(bridge(lambda x: jnp.linalg.cholesky(x, symmetrize_input=False))(x))
    assert np.all(np.isnan(factor[np.tril_indices(3)]))


@pytest.mark.parametrize("name", ["min", "max"])
def test_what_is_nan_attains_the_extremum_of_a_scatter(bridge, name):
    x = np.array([np.nan, np.nan, 1.0, 1.0, np.nan], np.float32)  # the first is not scattered to
    updates, places = np.array([2.0, np.nan, 0.0, np.nan], np.float32), np.array([1, 2, 3, 4])
    x_dot, updates_dot = np.arange(1.0, 6, dtype=np.float32), np.arange(10.0, 50, 10, dtype=np.float32)

    def f(x, updates):
        return getattr(x.at[places], name)(updates)

    y, y_dot = jax.jvp(bridge(f), (x, updates), (x_dot, updates_dot))
    kept = 4.0 if name == "max" else 30.0
    assert_agree(y_dot, np.array([1, 2, 20, kept, 22.5], np.float32), "tangent")
    back = jax.vjp(bridge(f), x, updates)[1](np.ones_like(y))
    operand, update = (1.0, 0.0) if name == "max" else (0.0, 1.0)
    assert_agree(back[0], np.array([1, 1, 0, operand, 0.5], np.float32), "cotangent of the operand")
    assert_agree(back[1], np.array([0, 1, update, 0.5], np.float32), "cotangent of the updates")
