"""Engines that are wrong on purpose, to see that a comparison notices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import jax
import jax.numpy as jnp

from pybridge import Program
from pybridge.engines import Engine
from pybridge.ir.types import Literal, Var


@jax.custom_jvp
def _sine(x):
    return jnp.sin(x)


@_sine.defjvp
def _sine_tripled(primals, tangents):
    return jnp.sin(primals[0]), 3 * jnp.cos(primals[0]) * tangents[0]


@jax.custom_vjp
def _exponential(x):
    return jnp.exp(x)


_exponential.defvjp(lambda x: (jnp.exp(x), x), lambda x, ct: (1.01 * jnp.exp(x) * ct,))


def _one_by_one(replacements: dict[str, Callable]) -> Callable:
    """Runs a Program equation by equation, with some operations replaced."""

    def apply(program: Program, arrays, options):
        values = dict(zip(program.inputs, arrays, strict=True))

        def read(atom):
            return atom.value if isinstance(atom, Literal) else values[atom]

        for eq in program.equations:
            if eq.op in replacements:
                results = [replacements[eq.op](*map(read, eq.inputs))]
            else:
                inputs = tuple(dict.fromkeys(a for a in eq.inputs if isinstance(a, Var)))
                alone = replace(program, inputs=inputs, equations=(eq,), outputs=eq.outputs, structure=None)
                results = alone.to_jax()(*map(read, inputs))
            values.update(zip(eq.outputs, results, strict=True))
        return [read(a) for a in program.outputs]

    return apply


def _raise(program, arrays, options):
    raise RuntimeError("out of luck\nand more lines")


def _engine(name: str, apply: Callable) -> Engine:
    return Engine(name, apply, lambda: None, ("xla",))


TRIPLED_SINE = _engine("tripled-sine", _one_by_one({"sin": _sine}))
"""The tangent of sin is three times what it should be."""

SKEWED_EXPONENTIAL = _engine("skewed-exponential", _one_by_one({"exp": _exponential}))
"""The cotangent of exp is off by a hundredth; it has no JVP."""

SHIFTED = _engine("shifted", lambda program, arrays, _: [y + 1e-2 for y in program.to_jax()(*arrays)])
"""Right derivatives of a wrong value."""

RAISING = _engine("raising", _raise)
"""Fails with an exception."""

ABSENT = Engine("absent", _raise, lambda: "no such package; `pip install it`", ("xla",))
"""Cannot work here, and says so."""
