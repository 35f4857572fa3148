"""The vector-normalising loop of the Enzyme paper: its gradient takes time linear in n, after optimisation.

    python examples/normalise.py      (needs Enzyme.jl)

Beside it the same loop in JAX, whose AD does not see that the norm is the same in each step.
"""

import time
from pathlib import Path

import jax
import jax.numpy as jnp

import pybridge as pb

SIZES = (1000, 2000, 4000, 8000)


def by_enzyme():
    return pb.julia_function(
        "normalise!",
        source=Path(__file__).parent / "julia" / "normalise.jl",
        result=lambda x: x,
        inplace=True,
        inputs="copy",
    )


def by_jax(x):
    return jax.lax.map(lambda v: v / jnp.sqrt(jnp.sum(x * x)), x)


def seconds(normalise, size: int, repeats: int = 5) -> float:
    """The best time of one gradient."""
    x = jnp.linspace(0.1, 1.0, size)
    gradient = jax.jit(jax.grad(lambda x: jnp.sum(normalise(x) ** 3)))
    gradient(x).block_until_ready()
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        gradient(x).block_until_ready()
        times.append(time.perf_counter() - begin)
    return min(times)


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    print("     n   Enzyme.jl        JAX   (milliseconds a gradient)")
    for size in SIZES:
        print(f"{size:6d} {1e3 * seconds(by_enzyme(), size):10.3f} {1e3 * seconds(by_jax, size):10.3f}")
