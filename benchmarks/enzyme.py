"""Engine `enzyme`, compared with native kernels of `transpose` and with handwritten Julia for Enzyme.jl.

    python -m benchmarks.enzyme      (needs Enzyme.jl)

Prints a table for docs/engines.md. Two claims: the seed benchmark's VJP takes at most 3 times as long as by
native transposition, and a scan of many small numbers at most twice as long as the loop written by hand.
"""

from __future__ import annotations

import datetime
import functools
import time
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import pybridge as pb

ENGINES = ("enzyme", "transpose", "jax")
SECONDS = 3.0


def waves(x, a):
    return jnp.sin(a * x) ** 2 / a


def step_of(rate):
    """Thirty coupled nodes of a mean and a precision each, in nested dicts."""

    def step(carry, u):
        new, parent = {}, u
        for name, node in carry.items():
            volatility = jnp.exp(0.01 * rate * node["mean"])
            precision = 1 / (1 / node["precision"] + volatility) + 1 / (1 + volatility)
            parent = node["mean"] + 0.1 * (parent - node["mean"]) / precision
            new[name] = {"mean": parent, "precision": precision / (1 + precision)}
        return new, parent

    return step


def nodes(means):
    return {f"node{i:02}": {"mean": jnp.asarray(means[i]), "precision": jnp.ones(())} for i in range(30)}


MEANS = 0.1 * np.arange(30)


def chain(rate, inputs):
    return jnp.sum(jax.lax.scan(step_of(rate), nodes(MEANS), inputs)[1] ** 2)


def ends(means):
    last = jax.lax.scan(step_of(0.3), nodes(means), INPUTS)[0]
    return jnp.stack([node["mean"] for node in last.values()])


def milliseconds(f: Callable, *args) -> float:
    """The least time of a call."""
    jax.block_until_ready(f(*args))
    end, times = time.perf_counter() + SECONDS, []
    while time.perf_counter() < end or len(times) < 5:
        start = time.perf_counter()
        jax.block_until_ready(f(*args))
        times.append(time.perf_counter() - start)
    return 1e3 * min(times)


def seed(engine: str) -> float:
    random = np.random.default_rng(0)
    x, g = (jnp.asarray(random.standard_normal((32, 2048, 64), np.float32)) for _ in range(2))
    a = jnp.asarray(random.uniform(0.5, 2.0, 64).astype(np.float32))
    f = pb.bridge(waves, engine=engine)
    return milliseconds(jax.jit(lambda x, a, g: jax.vjp(f, x, a)[1](g)), x, a, g)


INPUTS = np.random.default_rng(0).standard_normal(614)


def scan(engine: str) -> float:
    with jax.enable_x64(True):
        gradient = jax.jit(jax.grad(pb.bridge(chain, engine=engine)))
        assert np.isclose(gradient(0.3, INPUTS), by_hand(1)[0], rtol=1e-8)
        return milliseconds(gradient, jnp.asarray(0.3), jnp.asarray(INPUTS))


def jacobian(mode: Callable, engine: str) -> float:
    with jax.enable_x64(True):
        f = jax.jit(mode(pb.bridge(ends, engine=engine)))
        assert np.allclose(f(jnp.asarray(MEANS)), jax.jacfwd(ends)(MEANS), rtol=1e-8)
        return milliseconds(f, jnp.asarray(MEANS))


def by_hand(count: int) -> tuple[float, float]:
    """The gradient, and the milliseconds that it takes inside of Julia."""
    timed = pb.julia_function("timed", source=Path(__file__).with_name("chain.jl"), inputs="copy")
    gradient, seconds = timed(0.3, INPUTS, count)
    return float(gradient), 1e3 * float(seconds)


def main() -> None:
    rows = {
        "VJP of `sin(a*x)**2/a`, x (32, 2048, 64) float32": seed,
        "gradient, scan of 614 steps, 60 float64": scan,
        "`jacfwd` of the scan's 30 last means by its 30 first": functools.partial(jacobian, jax.jacfwd),
        "`jacrev` of the same": functools.partial(jacobian, jax.jacrev),
    }
    times = {measure: {engine: measure(engine) for engine in ENGINES} for measure in rows.values()}
    with jax.enable_x64(True):
        hand = by_hand(2000)[1]
    print(f"Least times in milliseconds, {datetime.date.today():%d %B %Y}:\n")
    print("| | " + " | ".join(f"`{e}`" for e in ENGINES) + " | by hand |\n|---|" + "---|" * 4)
    for title, measure in rows.items():
        found = " | ".join(f"{times[measure][e]:.3g}" for e in ENGINES)
        print(f"| {title} | {found} | {f'{hand:.3g} ' if measure is scan else ''}|")
    seeds, scans = times[seed], times[scan]
    assert seeds["enzyme"] <= 3 * seeds["transpose"] and scans["enzyme"] <= 2 * hand


if __name__ == "__main__":
    main()
