"""Reductions, running ones and scatters of every dtype: JAX's values and derivatives, or its refusal."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from covering import covering
from jax import lax

import pybridge as pb

IDS = np.array([2, 0, 2, 1, 0, 2])
FLOATS = "float16", "bfloat16", "float32", "float64"
COMPLEX = "complex64", "complex128"
KINDS = ("bool",), ("int8", "int32", "int64"), ("uint8", "uint32"), FLOATS, COMPLEX
TOLERANCE = {"float16": 4e-3, "bfloat16": 4e-2, "float32": 1e-5, "complex64": 1e-5}

FUNCTIONS = {
    "sum": lambda x: jnp.sum(x, 1),
    "prod": lambda x: jnp.prod(x, 0),
    "max": lambda x: jnp.max(x, 0),
    "min": lambda x: jnp.min(x, 1),
    "max of all": jnp.max,
    "argmax": lambda x: lax.argmax(x, 0, jnp.int32),
    "argmin": lambda x: lax.argmin(x, 1, jnp.int32),
    "cumsum": lambda x: lax.cumsum(x, 0),
    "cumprod": lambda x: lax.cumprod(x, 1),
    "cummax": lambda x: lax.cummax(x, 0),
    "cummax from the end": lambda x: lax.cummax(x, 1, reverse=True),
    "cummin": lambda x: lax.cummin(x, 1),
    "cumlogsumexp": lambda x: lax.cumlogsumexp(x, 0),
    "segment_sum": lambda x: jax.ops.segment_sum(x, IDS, 4),
    "segment_prod": lambda x: jax.ops.segment_prod(x, IDS, 4),
    "segment_max": lambda x: jax.ops.segment_max(x, IDS, 4),
    "segment_min": lambda x: jax.ops.segment_min(x, IDS, 4),
    "at add": lambda x: x[:3].at[IDS].add(x),
    "at multiply": lambda x: x[:3].at[IDS].multiply(x),
    "at max": lambda x: x[:3].at[IDS].max(x),
    "at min": lambda x: x[:3].at[IDS].min(x),
    "sort": lambda x: lax.sort(x, dimension=0),
    "window": lambda x: lax.reduce_window(x, _least(x.dtype), lax.max, (2, 2), (1, 1), "VALID"),
}


def _least(dtype):
    if jnp.issubdtype(dtype, np.bool_):
        return np.False_
    return np.array(-np.inf if jnp.issubdtype(dtype, np.inexact) else jnp.iinfo(dtype).min, dtype)


def _numbers(dtype: str, salt: int = 0) -> jax.Array:
    """Different numbers, of complex ones some with equal real parts."""
    rng = np.random.default_rng(salt)
    order = rng.permutation(24).reshape(6, 4)
    if dtype == "bool":
        return jnp.asarray(order % 3 == 0)
    if jnp.issubdtype(jnp.dtype(dtype), np.complexfloating):
        return jnp.asarray((order // 3 - 4) / 4 + 1j * (order % 3 - 0.9) / 2, dtype)
    if jnp.issubdtype(jnp.dtype(dtype), np.inexact):
        return jnp.asarray((order - 11) / 8, dtype)
    return jnp.asarray(order if dtype.startswith("u") else order - 11, dtype)


def _value(f, x):
    return f(x)


def _jvp(f, x):
    return jax.jvp(f, (x,), (_numbers(str(x.dtype), 1),))[1]


def _vjp(f, x):
    y, pullback = jax.vjp(f, x)
    weights = np.random.default_rng(2).permutation(y.size).reshape(y.shape) / 8 - 1
    return pullback(jnp.asarray(weights, y.dtype))[0]


def _outcome(what, f, x):
    """The result, or the exception that there is instead."""
    try:
        return np.asarray(what(f, x))
    except Exception as e:  # whatever JAX raises: this is about which
        return e


def _each_kind(names, *kinds):
    """The names with a dtype of each kind."""
    return [pair for dtypes in kinds for pair in covering(names, dtypes, least=1)]


CASES = [(name, dtype, _value) for name, dtype in _each_kind(FUNCTIONS, *KINDS)] + [
    (name, dtype, what)
    for name, dtype in _each_kind([name for name in FUNCTIONS if not name.startswith("arg")], FLOATS, COMPLEX)
    for what in (_jvp, _vjp)
]


@pytest.fixture(autouse=True)
def _wide_types():
    with jax.enable_x64(True):
        yield


def _later(a, b):
    return jnp.where(jnp.where(a.real == b.real, a.imag > b.imag, a.real > b.real), a, b)


def _earlier(a, b):
    return -_later(-a, -b)


# JAX refuses the derivatives of these for complex numbers: those of the same by comparisons.
REFERENCES = {
    "cummax": lambda x: lax.associative_scan(_later, x, axis=0),
    "cummax from the end": lambda x: lax.associative_scan(_later, x, axis=1, reverse=True),
    "cummin": lambda x: lax.associative_scan(_earlier, x, axis=1),
}


def _reference(name, dtype, what):
    given_up = dtype.startswith("complex") and what is not _value
    return REFERENCES.get(name, FUNCTIONS[name]) if given_up else FUNCTIONS[name]


@functools.cache
def _bridged(name: str, execute: str):
    return pb.bridge(FUNCTIONS[name], execute=execute)


def _complaint(got, expected, dtype):
    if isinstance(expected, Exception):
        fine = isinstance(got, (type(expected), pb.PyBridgeError))
    elif isinstance(got, Exception):
        fine = False
    else:
        fine = got.dtype == expected.dtype and _near(got, expected, TOLERANCE.get(dtype, 1e-12))
    return "" if fine else f"{got!r:.300} and not {expected!r:.300}"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_as_jax(name):
    complaints = []
    for case, dtype, what in CASES:
        if case != name:
            continue
        x = _numbers(dtype)
        expected = _outcome(what, _reference(name, dtype, what), x)
        for execute in ("julia", "xla") if what is _value else ("julia",):
            got = _outcome(what, _bridged(name, execute), x)
            complaint = _complaint(got, expected, dtype)
            if complaint:
                complaints.append(f"{what.__name__[1:]} of {dtype} by {execute}: {complaint}")
    assert not complaints, "\n".join(complaints)


@pytest.mark.parametrize("execute", ["julia", "xla"])
@pytest.mark.parametrize("name", ["cummax", "cummax from the end", "cummin"])
def test_running_extrema_have_no_slope_where_they_are_nan_but_at_their_start(name, execute):
    x = jnp.array([[1.0, np.nan, 3.0], [2.0, 5.0, 4.0], [0.5, 1.5, np.nan]])
    ours = pb.bridge(FUNCTIONS[name], execute=execute)
    tangents = [jax.jvp(f, (x,), (jnp.arange(1.0, 10.0).reshape(3, 3),))[1] for f in (ours, FUNCTIONS[name])]
    np.testing.assert_array_equal(*tangents)
    gradients = [jax.vjp(f, x)[1](jnp.arange(9.0).reshape(3, 3))[0] for f in (ours, FUNCTIONS[name])]
    np.testing.assert_array_equal(*gradients)


def _near(a, b, tolerance):
    wide = [x.astype(np.complex128) for x in (a, b)]
    return np.allclose(*wide, rtol=tolerance, atol=tolerance, equal_nan=True)
