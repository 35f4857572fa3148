"""The function that pybridge began with: elementwise, with one argument that is broadcast."""

import jax.numpy as jnp
import numpy as np

SHAPE = (32, 512, 64)


def f(x, a):
    return jnp.sin(a * x) ** 2 / a


def example_args(name):
    rng = np.random.default_rng(0)
    x = rng.standard_normal(SHAPE).astype(np.float32)
    a = rng.uniform(0.5, 2.0, SHAPE[-1:]).astype(np.float32)
    return x, a
