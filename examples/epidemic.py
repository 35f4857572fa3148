"""One simulation written in two ways; docs/performance.md tells by their plans why one is faster.

`python examples/epidemic.py` gives the times of their gradients, and
`pybridge show --plan --derivative grad examples/epidemic.py:written` a plan.
"""

from __future__ import annotations

import timeit

import jax
import jax.numpy as jnp
import numpy as np

DAYS = 1000


def _day(rates, state):
    """Susceptible, infected and recovered shares after a tenth of a day."""
    (infection, recovery), (s, i, r) = rates, state
    infected, recovered = 0.1 * infection * s * i, 0.1 * recovery * i
    return s - infected, i + infected - recovered, r + recovered


def _misfit(infected):
    return ((infected - 0.1 * jnp.sin(jnp.arange(DAYS) / 100) ** 2) ** 2).sum()


def written(rates):
    """The path is written into an array that the loop carries."""

    def step(t, carried):
        path, state = carried
        state = _day(rates, state)
        return path.at[t].set(state[1]), state

    path, _ = jax.lax.fori_loop(0, DAYS, step, (jnp.zeros(DAYS), (0.99, 0.01, 0.0)))
    return _misfit(path)


def stacked(rates):
    """The path is what the loop stacks."""

    def step(state, _):
        state = _day(rates, state)
        return state, state[1]

    _, path = jax.lax.scan(step, (0.99, 0.01, 0.0), length=DAYS)
    return _misfit(path)


def example_args(name):
    """What the command line calls these functions with."""
    return (np.array([0.4, 0.1], np.float32),)


def main() -> None:
    import pybridge as pb

    (rates,) = example_args("written")
    for f in (written, stacked):
        gradients = [jax.jit(jax.grad(g)) for g in (pb.bridge(f), f)]
        expected = gradients[1](rates)
        np.testing.assert_allclose(gradients[0](rates), expected, rtol=1e-3)
        ours, jaxs = (
            min(timeit.repeat(lambda g=g: g(rates).block_until_ready(), number=20, repeat=20)) / 20
            for g in gradients
        )
        print(f"{f.__name__:8} pybridge {1e6 * ours:6.1f} µs, JAX {1e6 * jaxs:6.1f} µs")


if __name__ == "__main__":
    main()
