"""A simulator in plain Julia, its parameters fitted by optax.

python examples/lotka_volterra.py               gradients by Enzyme.jl, which calls Julia (and optax)
python examples/lotka_volterra.py transpose     the simulator traced to operations of JAX: any Julia will do,
                                                and its loss is exported for CPU and TPU, with no Julia in it
"""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import optax

import pybridge as pb

TRUE = {"alpha": 1.1, "beta": 0.4, "delta": 0.1, "gamma": 0.4}
START = (10.0, 5.0)
TIMES = 150


def simulator(engine: str = "enzyme"):
    return pb.julia_function(
        "simulate!",
        source=Path(__file__).parent / "julia" / "lotka_volterra.jl",
        result=jax.ShapeDtypeStruct((TIMES, 2), jnp.float64),
        inplace=True,
        engine=engine,
    )


def loss_of(engine: str = "enzyme"):
    """The loss of the parameters' logarithms."""
    simulate = simulator(engine)
    observed = jnp.log(simulate(START, TRUE))
    return lambda logarithms: jnp.mean(
        (jnp.log(simulate(START, jax.tree.map(jnp.exp, logarithms))) - observed) ** 2
    )


def fit(steps: int = 800, engine: str = "enzyme"):
    """The fitted parameters, and the loss at the beginning and at the end."""
    loss = loss_of(engine)
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


def exported(platforms=("cpu", "tpu")):
    """The loss and its gradient, by the logarithms of alpha, beta, delta and gamma, as StableHLO."""
    loss = loss_of("transpose")

    def value_and_gradient(*logarithms):
        return jax.value_and_grad(lambda p: loss(dict(zip(TRUE, p, strict=True))))(logarithms)

    return pb.export(value_and_gradient, platforms)(*(jax.ShapeDtypeStruct((), jnp.float64),) * len(TRUE))


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    engine = sys.argv[1] if len(sys.argv) > 1 else "enzyme"
    found, first, last = fit(engine=engine)
    print(f"loss {first:.3f} -> {last:.2e}")
    for name, value in TRUE.items():
        print(f"{name:6s} {float(found[name]):.4f}   (true {value})")
    if engine == "transpose":
        module = exported()
        print(f"exported for {' and '.join(module.platforms)}: {len(module.serialize())} bytes")
