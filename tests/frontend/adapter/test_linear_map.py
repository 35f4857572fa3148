"""A linear function with a transpose of its own, under JAX's transformations."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pybridge.frontend.adapter.linear_map import linear_map

X = np.array([0.3, -1.2, 2.0])


def scaled(factor, x, closed_over: bool):
    """factor * x, where the factor is a residual or what both functions close over."""
    if closed_over:
        return linear_map(lambda x: [factor * x], lambda ct: [ct * factor], [], [x])[0]
    return linear_map(lambda f, x: [f * x], lambda f, ct: [ct * f], [factor], [x])[0]


@pytest.mark.parametrize("closed_over", [False, True])
@pytest.mark.parametrize("order", [1, 2])
def test_derivatives_in_operand_and_factor(x64, closed_over, order):
    def f(a, x):
        return jnp.sum(scaled(jnp.sin(a), x, closed_over) ** 3)

    def plain(a, x):
        return jnp.sum((jnp.sin(a) * x) ** 3)

    for derivative in (jax.jacfwd, jax.jacrev):
        ours, theirs = f, plain
        for _ in range(order):
            ours, theirs = derivative(ours, (0, 1)), derivative(theirs, (0, 1))
        jax.tree.map(np.testing.assert_allclose, jax.jit(ours)(1.3, X), theirs(1.3, X))
    batches = np.array([0.3, 1.3]), np.stack([X, 2 * X])
    batched = jax.vmap(jax.grad(f, (0, 1)))(*batches)
    jax.tree.map(np.testing.assert_allclose, batched, jax.vmap(jax.grad(plain, (0, 1)))(*batches))
