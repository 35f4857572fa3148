"""Gradient descent whose step doubles after ten steps that go down, and halves after one that does not.

As the evals `particle` and `saddle` want it, after Siskind and Pearlmutter, Putting the Automatic Back into
AD: Part I, What's Wrong (2008). It is a loop of unknown length, which derivatives go through.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

FIRST_STEP, TOLERANCE, DOUBLED_AFTER = 1e-5, 1e-5, 10

Value = Callable[[jax.Array], jax.Array]
Gradient = Callable[[jax.Array], jax.Array]


class State(NamedTuple):
    x: jax.Array
    value: jax.Array
    gradient: jax.Array
    step: jax.Array
    descents: jax.Array  # since the step last changed
    arrived: jax.Array


def forward(f: Value) -> Gradient:
    """The gradient in forward mode: a derivative along each axis."""

    def gradient(x: jax.Array) -> jax.Array:
        return jnp.stack([jax.jvp(f, (x,), (axis,))[1] for axis in jnp.eye(x.size)])

    return gradient


MODES: dict[str, Callable[[Value], Gradient]] = {"f": forward, "r": jax.grad}


def argmin(f: Value, gradient: Gradient, start: jax.Array) -> jax.Array:
    """Where the gradient, or the next step, is no longer than the tolerance."""

    def goes_on(state: State) -> jax.Array:
        return ~state.arrived & (jnp.sum(state.gradient**2) > TOLERANCE**2)

    def advance(state: State) -> State:
        doubled = state.descents == DOUBLED_AFTER
        step = jnp.where(doubled, 2 * state.step, state.step)
        x = state.x - step * state.gradient
        arrived = jnp.sum((x - state.x) ** 2) <= TOLERANCE**2
        value = f(x)
        descends = ~arrived & (value < state.value)
        return State(
            jnp.where(descends, x, state.x),
            jnp.where(descends, value, state.value),
            jax.lax.cond(descends, gradient, lambda _: state.gradient, x),
            jnp.where(descends | arrived, step, step / 2),
            jnp.where(descends, jnp.where(doubled, 0, state.descents) + 1, 0),
            arrived,
        )

    first = State(start, f(start), gradient(start), jnp.array(FIRST_STEP), jnp.array(0), jnp.array(False))
    return jax.lax.while_loop(goes_on, advance, first).x


def argmax(f: Value, gradient: Gradient, start: jax.Array) -> jax.Array:
    return argmin(lambda x: -f(x), lambda x: -gradient(x), start)
