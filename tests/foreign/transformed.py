"""What every foreign function is held to: the same function in JAX, under JAX's transformations."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from agreement import assert_agree
from casekit import QUICK

TOLERANCE = 1e-9


def check(foreign, f, generated, mapped):
    """Value, derivatives of both orders, jit and vmap.

    generated: the arguments, from a generator of random numbers. mapped: which of them vmap maps.
    """
    ours, theirs = _measured(foreign, mapped), _measured(f, mapped)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        args = generated(rng)
        tangents = jax.tree.map(lambda x: rng.standard_normal(np.shape(x)).astype(x.dtype), args)  # noqa: B023
        found, expected = ours(args, tangents), theirs(args, tangents)
        for name, y in expected.items():
            assert_agree(found[name], y, name, TOLERANCE)
    assert_agree(foreign(*args), expected["value"], "value, eager", TOLERANCE)
    gradient = jax.grad(_total(foreign), range(len(args)))(*args)
    assert_agree(gradient, expected["gradient"], "gradient, eager", TOLERANCE)


def _measured(g, mapped):
    """Under one jit."""
    axes = tuple(0 if m else None for m in mapped)
    total = _total(g)
    gradient = jax.grad(total, range(len(mapped)))

    def compute(args, tangents):
        stacked = tuple(
            jax.tree.map(lambda x: jnp.stack([x, 0.8 * x, 1.1 * x]), arg) if m else arg
            for arg, m in zip(args, mapped, strict=True)
        )
        return {
            "value": g(*args),
            "JVP": jax.jvp(g, args, tangents)[1],
            "gradient": gradient(*args),
            "forward over reverse": jax.jvp(gradient, args, tangents)[1],
            "reverse over reverse": jax.vjp(gradient, *args)[1](tangents),
            "reverse over forward": jax.grad(lambda *x: jax.jvp(total, x, tangents)[1])(*args),
            "vmap": jax.vmap(g, axes)(*stacked),
            "vmap of the gradient": jax.vmap(gradient, axes)(*stacked),
            "in a scan": jax.lax.scan(lambda s, _: (s + total(*args), s), 0.0, None, length=2)[0],
        }

    return jax.jit(compute, compiler_options=QUICK)


def _total(g):
    def total(*args):
        return sum((k + 1) * jnp.sum(jnp.sin(y)) for k, y in enumerate(jax.tree.leaves(g(*args))))

    return total
