"""The loss of a character model of LSTM layers whose weights are diagonal matrices, from ADBench."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from ...errors import ArgumentError
from ..function import Bridge, Function, Operands, plain
from ..inputs import Input


def layer(weight: jax.Array, bias: jax.Array, state: jax.Array, x: jax.Array) -> jax.Array:
    """The layer's next hidden and cell state. Rows of weight and bias: forget, ingate, outgate, change."""
    hidden, cell = state
    forget, ingate, outgate, change = weight * jnp.stack([x, hidden, x, hidden]) + bias
    kept = cell * jax.nn.sigmoid(forget) + jax.nn.sigmoid(ingate) * jnp.tanh(change)
    return jnp.stack([jax.nn.sigmoid(outgate) * jnp.tanh(kept), kept])


def loss(main: jax.Array, extra: jax.Array, state: jax.Array, sequence: jax.Array) -> jax.Array:
    """main: (layers, 2, 4, bits), weights and biases; extra: into the first layer, out of the last, its bias.

    state: (layers, 2, bits); sequence: (characters, bits).
    """
    into, out, bias = extra

    def step(state: jax.Array, pair: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        character, following = pair
        x, states = character * into, []
        for (w, b), before in zip(main, state, strict=True):
            states.append(layer(w, b, before, x))
            x = states[-1][0]
        guess = x * out + bias
        normaliser = jnp.log(jnp.sum(jnp.exp(guess)) + 2)  # ADBench's, which has the 2
        return jnp.stack(states), jnp.sum(following * (guess - normaliser))

    _, gains = jax.lax.scan(step, state, (sequence[:-1], sequence[1:]))
    return -jnp.sum(gains) / sequence[1:].size


def _read(value: Input) -> Operands:
    sequence = value.at("sequence").floats(None, None)
    characters, bits = sequence.shape
    if characters < 2:
        raise ArgumentError("input.sequence has fewer than two characters: there is none to be guessed")
    rows = value.at("main_params").floats(None, 4 * bits)
    layers = len(rows) // 2
    if len(rows) != 2 * layers:
        raise ArgumentError("input.main_params has an odd number of rows, and a layer has two")
    arrays = (
        rows.reshape(layers, 2, 4, bits),
        value.at("extra_params").floats(3, bits),
        value.at("state").floats(2 * layers, bits).reshape(layers, 2, bits),
        sequence,
    )
    return Operands(arrays)


def _flat(gradients: tuple[jax.Array, jax.Array]) -> list[float]:
    return np.concatenate([np.ravel(gradient) for gradient in gradients]).tolist()


def functions(bridge: Bridge) -> dict[str, Function]:
    bridged = bridge(loss)
    return {
        "objective": Function(bridged, _read, plain),
        "jacobian": Function(jax.grad(bridged, argnums=(0, 1)), _read, _flat),
    }
