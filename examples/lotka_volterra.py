"""A simulator in plain Julia, its parameters fitted by optax with gradients by Enzyme.jl.

python examples/lotka_volterra.py      (needs Enzyme.jl, and optax)
"""

from pathlib import Path

import jax
import jax.numpy as jnp
import optax

import pybridge as pb

TRUE = {"alpha": 1.1, "beta": 0.4, "delta": 0.1, "gamma": 0.4}
START = (10.0, 5.0)
TIMES = 150


def simulator():
    return pb.julia_function(
        "simulate!",
        source=Path(__file__).parent / "julia" / "lotka_volterra.jl",
        result=jax.ShapeDtypeStruct((TIMES, 2), jnp.float64),
        inplace=True,
    )


def fit(steps: int = 800):
    """The fitted parameters, and the loss at the beginning and at the end."""
    simulate = simulator()
    observed = jnp.log(simulate(START, TRUE))

    def loss(logarithms):
        return jnp.mean((jnp.log(simulate(START, jax.tree.map(jnp.exp, logarithms))) - observed) ** 2)

    optimizer = optax.adam(0.02)
    guess = {"alpha": jnp.log(0.9), "beta": jnp.log(0.5), "delta": jnp.log(0.12), "gamma": jnp.log(0.5)}

    def step(carry, _):
        parameters, state = carry
        value, gradient = jax.value_and_grad(loss)(parameters)
        updates, state = optimizer.update(gradient, state)
        return (optax.apply_updates(parameters, updates), state), value

    run = jax.jit(lambda carry: jax.lax.scan(step, carry, None, length=steps))
    (parameters, _), losses = run((guess, optimizer.init(guess)))
    return jax.tree.map(jnp.exp, parameters), losses[0], losses[-1]


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    found, first, last = fit()
    print(f"loss {first:.3f} -> {last:.2e}")
    for name, value in TRUE.items():
        print(f"{name:6s} {float(found[name]):.4f}   (true {value})")
