"""What a call costs: one addition of two scalars."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from ..case import Case, Problem, Requirement, native

_BARE, _CALLBACK = "jitted add", "jax.pure_callback"


def _add(x, y):
    return x + y


def _by_callback(x, y):
    return jax.pure_callback(np.add, jax.ShapeDtypeStruct((), jnp.float32), x, y)


def _problem(quick: bool) -> Problem:
    return Problem(
        native(_add), _add, {_BARE: _add, _CALLBACK: _by_callback}, (np.float32(1.5), np.float32(2.0))
    )


CASES = (
    Case(
        "scalar",
        "call with two scalars",
        (Requirement(_BARE, 1 / 3), Requirement(_CALLBACK, None)),
        _problem,
        tolerance=1e-7,
        x64=False,
    ),
)
