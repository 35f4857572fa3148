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


@jax.custom_jvp
def _tanh(x):
    return jnp.tanh(x)


@_tanh.defjvp
def _tanh_back_and_forth(primals, tangents):
    """The tangent is right, and the cotangent a tenth too large."""
    y = jnp.tanh(primals[0])
    scaled = jax.custom_derivatives.linear_call(
        lambda slope, t: slope * t, lambda slope, ct: 1.1 * slope * ct, 1 - y * y, tangents[0]
    )
    return y, scaled


@jax.custom_jvp
def _cosine(x):
    return jnp.cos(x)


@_cosine.defjvp
def _cosine_forwards(primals, tangents):
    def refuse(slope, ct):
        raise RuntimeError("no way back")

    slope = -jnp.sin(primals[0])
    return jnp.cos(primals[0]), jax.custom_derivatives.linear_call(
        lambda slope, t: slope * t, refuse, slope, tangents[0]
    )


def _in_company(program: Program, arrays, options):
    """Wrong where a Program has a square root of the exponential function."""
    ops = [eq.op for eq in program.equations]
    together = "exp" in ops and "sqrt" in ops[ops.index("exp") :]
    return _one_by_one({"sqrt": _root} if together else {})(program, arrays, options)


@jax.custom_jvp
def _root(x):
    return jnp.sqrt(x)


_root.defjvp(lambda primals, tangents: (jnp.sqrt(primals[0]), tangents[0]))


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

WRONG_BACKWARDS = _engine("wrong-backwards", _one_by_one({"tanh": _tanh}))
"""The cotangent of tanh is a tenth too large; its tangent is right."""

NOT_BACKWARDS = _engine("not-backwards", _one_by_one({"cos": _cosine}))
"""Has no cotangent of cos."""

IN_COMPANY = _engine("in-company", _in_company)
"""The tangent of sqrt is that of the identity, if there is an exp before it."""

SHIFTED = _engine("shifted", lambda program, arrays, _: [y + 1e-2 for y in program.to_jax()(*arrays)])
"""Right derivatives of a wrong value."""

RAISING = _engine("raising", _raise)
"""Fails with an exception."""

ABSENT = Engine("absent", _raise, lambda: "no such package; `pip install it`", ("xla",))
"""Cannot work here, and says so."""
