"""The upper half of a product of integers, where JAX does not have it."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from pybridge.frontend.adapter.integers import _from_halves

DTYPES = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]


@pytest.mark.parametrize("dtype", DTYPES)
def test_products_are_those_of_numbers_of_any_length(dtype, x64):
    limits = np.iinfo(dtype)
    edges = np.array([limits.min, limits.min + 1, 0, 1, limits.max - 1, limits.max], dtype)
    rng = np.random.default_rng(3)
    drawn = rng.integers(limits.min, limits.max, (2, 200), dtype, endpoint=True)
    x = np.concatenate([np.repeat(edges, len(edges)), drawn[0]])
    y = np.concatenate([np.tile(edges, len(edges)), drawn[1]])
    upper = (x.astype(object) * y.astype(object)) >> limits.bits
    found = _from_halves(jnp.asarray(x), jnp.asarray(y))
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, upper.astype(dtype))
