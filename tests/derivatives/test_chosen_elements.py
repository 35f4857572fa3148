"""Derivatives of what is chosen among elements that XLA computes anew in each place that needs them.

With a fused multiply-add in one place alone, `1.8 * x + 0.2` differs there by a rounding, and equals no
extremum that another place has found. JAX 0.12's own derivative of `max` is zero for it under jit.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from covering import covering
from jax import lax

import pybridge as pb

INDICES = jnp.array([0, 1, 1, 2, 3, 3])
CHOICES = {
    "max of columns": lambda x: jnp.max(x, axis=0),
    "max of rows": lambda x: jnp.max(x, axis=1),
    "min of all": jnp.min,
    "maximum": lambda x: jnp.maximum(x, 1.7 * x[::-1] + 0.3),
    "relu": jax.nn.relu,
    "cummax from the end": lambda x: lax.cummax(x, axis=0, reverse=True),
    "cummin": lambda x: lax.cummin(x, axis=1),
    "windows": lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (1, 1), "VALID"),
    "scatter_max": lambda x: jnp.zeros(8).at[INDICES].max(x[0, :6]),
    "scatter_min of columns": lambda x: x.at[INDICES].min(1.7 * x[:6] + 0.3),
    "sort": lambda x: jnp.sort(x, axis=0),
}


@pytest.mark.parametrize(("choice", "execute"), covering(CHOICES, ["julia", "xla"], least=1))
def test_an_element_that_is_computed_twice_is_still_the_one_chosen(choice, execute):
    def f(x):
        return CHOICES[choice](1.8 * x + 0.2)

    with jax.enable_x64(True):
        bridged = pb.bridge(f, execute=execute)
        pushed = jax.jit(lambda x, v: jax.jvp(bridged, (x,), (v,)))
        pulled = jax.jit(lambda x, u: jax.vjp(bridged, x)[1](u)[0])
        for seed in range(3):
            rng = np.random.default_rng(seed)
            x, v = jnp.asarray(rng.standard_normal((2, 8, 8)))
            with jax.disable_jit():
                y, y_dot = jax.jvp(f, (x,), (v,))
            found = pushed(x, v)
            np.testing.assert_allclose(found[0], y, rtol=1e-14, atol=1e-14)
            np.testing.assert_allclose(found[1], y_dot, rtol=1e-13, atol=1e-13)
            u = jnp.asarray(rng.standard_normal(y.shape))
            x_bar = pulled(x, u)
            np.testing.assert_allclose(jnp.vdot(x_bar, v), jnp.vdot(u, y_dot), rtol=1e-12, atol=1e-12)
