"""optax: training loops whose losses go down by the same numbers as with JAX's own gradients."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from agreement import assert_agree
from jax import lax
from sameness import both_executes

import pybridge as pb

RNG = np.random.default_rng(8)
X = jnp.asarray(RNG.standard_normal((16, 3)))
Y = jnp.sin(X[:, :1]) * X[:, 1:2]
START = {
    "hidden": {"w": jnp.asarray(RNG.standard_normal((3, 8))), "b": jnp.zeros(8)},
    "last": {"w": jnp.asarray(RNG.standard_normal((8, 1))), "b": jnp.zeros(1)},
}
STEPS = 20


def loss(params, x, y):
    hidden = jax.nn.swish(x @ params["hidden"]["w"] + params["hidden"]["b"])
    return jnp.mean(optax.huber_loss(hidden @ params["last"]["w"] + params["last"]["b"], y))


OPTIMIZERS = {
    "adamw with warmup and clipping": optax.chain(
        optax.clip_by_global_norm(0.5),
        optax.adamw(optax.warmup_cosine_decay_schedule(0.0, 0.05, 5, STEPS)),
    ),
    "sgd with momentum, every other step": optax.MultiSteps(optax.sgd(0.1, momentum=0.9, nesterov=True), 2),
}


def trained(loss, optimizer, by_scan):
    """The losses of some steps, in a Python loop of jitted steps or a scan over them."""

    @partial(jax.jit, donate_argnums=(0, 1))
    def step(params, state):
        value, grads = jax.value_and_grad(loss)(params, X, Y)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, value

    params = jax.tree.map(jnp.copy, START)
    state = optimizer.init(params)
    if by_scan:
        return jax.jit(
            lambda params, state: lax.scan(
                lambda carry, _: ((new := step(*carry))[:2], new[2]), (params, state), length=STEPS
            )[1]
        )(params, state)
    values = []
    for _ in range(STEPS):
        params, state, value = step(params, state)
        values.append(value)
    return jnp.stack(values)


@both_executes
@pytest.mark.parametrize("by_scan", [False, True], ids=["steps", "scan"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_losses_of_training(name, by_scan, execute):
    found = trained(pb.bridge(loss, execute=execute), OPTIMIZERS[name], by_scan)
    assert_agree(found, trained(loss, OPTIMIZERS[name], by_scan), name, 1e-4)
    assert found[-1] < 0.5 * found[0]


@both_executes
def test_a_bridged_training_loop(execute):
    """The whole loop inside of the bridge, differentiated by the learning rate."""

    def final(rate):
        optimizer = optax.inject_hyperparams(optax.adam)(learning_rate=rate)

        def step(carry, _):
            params, state = carry
            value, grads = jax.value_and_grad(loss)(params, X, Y)
            updates, state = optimizer.update(grads, state, params)
            return (optax.apply_updates(params, updates), state), value

        return lax.scan(step, (START, optimizer.init(START)), length=5)[1][-1]

    found = jax.value_and_grad(pb.bridge(final, execute=execute))(0.01)
    assert_agree(found, jax.value_and_grad(final)(0.01), "derivative by the learning rate", 1e-4)
