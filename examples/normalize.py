"""Differentiation after optimisation: how a gradient's time grows with n, for a loop with its norm inside.

    for i in 1:n
        out[i] = x[i] / norm(x)
    end

A compiler takes the norm out of the loop, which leaves n operations instead of n². Enzyme.jl differentiates
what the compiler has made of the loop, so the gradient takes time in proportion to n as well. JAX
differentiates the loop as it is written: its reverse pass has the norm's derivative, n operations, in each of
n trips. (Moses & Churavy, NeurIPS 2020. The Julia file says when LLVM can tell that it may move the norm.)

    python examples/normalize.py      (needs Enzyme.jl)
"""

import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import pybridge as pb

SOURCE = (Path(__file__).parent / "julia" / "normalize.jl").read_text(encoding="utf-8")
SIZES = (64, 128, 256, 512)
BATCH = 200
"""Gradients in one call, so that it is them that is timed and not the call."""


def by_tuple(n):
    """Julia's loop over a tuple of n elements: the norm leaves it."""
    code = f"{SOURCE}\nnormalize!(out, x) = normalize!(out, x, Val({n}))\n"
    return pb.julia_function("normalize!", source=code, inplace=True, result=lambda x: x)


def by_vector(n):
    """Julia's loop over a vector: the norm stays in it."""
    return pb.julia_function("normalize_vector!", source=SOURCE, inplace=True, result=lambda x: x)


def by_jax(n):
    return lambda x: jax.lax.map(lambda element: element / jnp.sqrt(jnp.sum(x**2)), x)


LOOPS = {"Enzyme.jl, norm hoisted": by_tuple, "Enzyme.jl, norm not hoisted": by_vector, "jax.grad": by_jax}


def gradient(loop):
    """Of a weighted sum, for a batch of vectors."""
    weighted = jax.grad(lambda x, w: jnp.sum(w * loop(x)))
    return jax.jit(jax.vmap(weighted, (0, None)))


def arguments(n):
    rng = np.random.default_rng(n)
    return jnp.asarray(rng.standard_normal((BATCH, n))), jnp.asarray(rng.standard_normal(n))


def microseconds(loop, n, seconds: float = 0.5):
    """Of one gradient, at best, in so much time and at least three calls."""
    f, x = gradient(loop), arguments(n)
    f(*x).block_until_ready()
    end, times = time.perf_counter() + seconds, []
    while time.perf_counter() < end or len(times) < 3:
        start = time.perf_counter()
        f(*x).block_until_ready()
        times.append(time.perf_counter() - start)
    return 1e6 * min(times) / BATCH


def order(times, sizes=SIZES):
    """The power of n that the times grow with: the slope of a line through their logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def measure(sizes=SIZES):
    return {name: [microseconds(make(n), n) for n in sizes] for name, make in LOOPS.items()}


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    print(f"{'microseconds for n =':28}", *(f"{n:8d}" for n in SIZES), "   order")
    for name, times in measure().items():
        print(f"{name:28}", *(f"{t:8.2f}" for t in times), f"{order(times):8.2f}")
