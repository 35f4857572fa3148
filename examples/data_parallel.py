"""A network fitted on eight devices, each of which has an eighth of the data: the loss averages over devices.

The same fit on one device, with JAX's own gradient, must find the same weights.

    python examples/data_parallel.py
"""

from __future__ import annotations

import os
import sys

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")  # this computer's CPU as eight

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

import pybridge as pb

STEPS, RATE, SAME = 60, 0.5, 1e-4


def data(rows: int = 512) -> tuple[np.ndarray, np.ndarray]:
    """Points of the plane, and a wave over it."""
    x = np.random.default_rng(0).uniform(-1, 1, (rows, 2)).astype(np.float32)
    return x, np.sin(3 * x[:, 0]) * np.cos(2 * x[:, 1])


def start(width: int = 24) -> dict[str, jax.Array]:
    rng = np.random.default_rng(1)
    shapes = {"in": (2, width), "bias": (width,), "out": (width,)}
    return {name: jnp.asarray(rng.normal(size=s) / s[0] ** 0.5, jnp.float32) for name, s in shapes.items()}


def loss(weights, x, y):
    """Of the rows at hand."""
    hidden = jnp.tanh(x @ weights["in"] + weights["bias"])
    return jnp.mean((hidden @ weights["out"] - y) ** 2)


def everywhere(weights, x, y):
    """Of the rows of all devices. JAX averages; what is before that and behind it runs in Julia."""
    mine = loss(weights, x, y)
    return jax.lax.pmean(mine, "i") + 1e-4 * sum(jnp.sum(w**2) for w in weights.values())


def alone(weights, x, y):
    return loss(weights, x, y) + 1e-4 * sum(jnp.sum(w**2) for w in weights.values())


def fit(value_and_gradient, x, y) -> tuple[dict[str, jax.Array], float]:
    weights = start()
    for _ in range(STEPS):
        value, gradient = value_and_gradient(weights, x, y)
        weights = jax.tree.map(lambda w, g: w - RATE * g, weights, gradient)
    return weights, float(value)


def report() -> bool:
    """Fits both ways, prints, and says whether the weights are the same."""
    devices = len(jax.devices())
    mesh = jax.make_mesh((devices,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
    local = jax.value_and_grad(pb.bridge(everywhere))
    split = jax.shard_map(local, mesh=mesh, in_specs=(P(), P("i"), P("i")), out_specs=P())
    x, y = data()
    ours, value = fit(jax.jit(split), x, y)
    theirs, expected = fit(jax.jit(jax.value_and_grad(alone)), x, y)
    apart = max(float(jnp.max(jnp.abs(ours[name] - theirs[name]))) for name in ours)
    verdict = "the same weights" if apart < SAME else "OTHER WEIGHTS"
    print(f"{devices} devices, {STEPS} steps: loss {value:.6f}; one device: {expected:.6f}")
    print(f"largest difference of weights {apart:.1e} (allowed {SAME:.0e}): {verdict}")
    return apart < SAME


if __name__ == "__main__":
    sys.exit(0 if report() else 1)
