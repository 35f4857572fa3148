"""Engines that are wrong, die or hang at one primitive; child processes import them by name."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp

from pybridge import Program
from pybridge.engines import Engine
from pybridge.frontend.emission import to_jax


def _has(program: Program, op: str) -> bool:
    return any(eq.op == op or any(_has(b, op) for b in eq.bodies) for eq in program.equations)


@jax.custom_jvp
def _passed(x):
    return x


_passed.defjvp(lambda primals, tangents: (primals[0], 1.25 * tangents[0]))


def _skewed(program, arrays, options):
    results = to_jax(program)(*arrays)
    if not _has(program, "sin"):
        return results
    return [_passed(y) if jnp.issubdtype(y.dtype, jnp.inexact) else y for y in results]


def _at(op: str, action: Callable[[], None]) -> Callable:
    def apply(program, arrays, options):
        if _has(program, op):
            action()
        return to_jax(program)(*arrays)

    return apply


def _raise():
    raise RuntimeError("no luck with 17 and %3")


def _engine(name: str, apply: Callable) -> Engine:
    return Engine(name, apply, lambda: None, ("xla",))


SKEWED = _engine("skewed", _skewed)
"""Derivatives of Programs with a sine are a quarter too large."""
DYING = _engine("dying", _at("cos", os.abort))
HANGING = _engine("hanging", _at("tan", lambda: time.sleep(1000)))
RAISING = _engine("raising", _at("exp", _raise))
