"""An engine that is wrong, dies, hangs or raises at one primitive each; child processes import it by name."""

from __future__ import annotations

import os
import time

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


def _raise():
    raise RuntimeError("no luck with 17 and %3")


def _apply(program, arrays, options):
    for op, action in {"cos": os.abort, "tan": lambda: time.sleep(1000), "exp": _raise}.items():
        if _has(program, op):
            action()
    results = to_jax(program)(*arrays)
    if not _has(program, "sin"):
        return results
    return [_passed(y) if jnp.issubdtype(y.dtype, jnp.inexact) else y for y in results]


FAULTY = Engine("faulty", _apply, lambda: None, ("xla",))
"""Dies at a cosine, hangs at a tangent, raises at an exponential, and its derivatives of Programs with a sine
are a quarter too large."""
