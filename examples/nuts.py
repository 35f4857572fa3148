"""A log density in plain Julia, sampled by blackjax's NUTS, all under one jit.

python examples/nuts.py      (needs blackjax; the gradient is Enzyme.jl's, or with --rule Julia code's)
"""

import sys
from pathlib import Path

import blackjax
import jax
import jax.numpy as jnp
import numpy as np

import pybridge as pb

TRUE = {"intercept": 1.0, "slope": -2.0, "log_scale": np.log(0.5)}


def data(count: int = 60):
    rng = np.random.default_rng(7)
    x = rng.uniform(-1, 1, count)
    noise = np.exp(TRUE["log_scale"]) * rng.standard_t(4, count)
    return jnp.asarray(x), jnp.asarray(TRUE["intercept"] + TRUE["slope"] * x + noise)


def density(rule: bool = False):
    """The log density as a JAX function of the parameters."""
    log_density = pb.julia_function(
        "log_density",
        source=Path(__file__).parent / "julia" / "log_density.jl",
        result=jax.ShapeDtypeStruct((), jnp.float64),
        vjp="log_density_vjp" if rule else None,
    )
    x, y = data()
    return lambda q: log_density(q, x, y)


def sample(count: int = 500, rule: bool = False):
    """Draws of the parameters."""
    nuts = blackjax.nuts(density(rule), step_size=0.15, inverse_mass_matrix=jnp.array([0.02, 0.05, 0.02]))

    def step(state, key):
        state, _ = nuts.step(key, state)
        return state, state.position

    def run(key):
        state = nuts.init(jax.tree.map(jnp.asarray, {"intercept": 0.0, "slope": 0.0, "log_scale": 0.0}))
        return jax.lax.scan(step, state, jax.random.split(key, count))[1]

    return jax.jit(run)(jax.random.key(3))


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    draws = sample(rule="--rule" in sys.argv)
    for name, values in draws.items():
        kept = values[100:]
        print(f"{name:10s} {kept.mean():7.3f} ± {kept.std():.3f}   (true {TRUE[name]:.3f})")
