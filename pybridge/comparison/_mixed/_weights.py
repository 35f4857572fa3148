"""What 32 bits would add to the error of a result, for each equation and each operand: by one sweep back.

The sweep is `blame`'s. It gives each equation the error that it makes in its own precision, the error that it
would make in float32, and for each operand the error that its rounding to float32 would make.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
from jax import lax

from ...frontend import emission
from ...ir.numerals import DTYPES
from ...ir.program import Equation, Program
from ...ir.types import Literal
from .._blame._frames import CALLED
from .._blame._own_errors import own_error
from .._blame._sweep import IDENTITIES, Array, Charges, Sweep, unit

NARROW = {"f64": "f32", "c128": "c64"}
"""The types that can be narrowed, and what they become."""

_UNIT = unit("f32")
_TINY = float(jnp.finfo(jnp.float32).tiny)
_LARGE = float(jnp.finfo(jnp.float32).max) / 4  # what is larger has no place in float32, with a margin
_SMALL = frozenset({"bool", "i8", "u8", "i16", "u16"})  # all of whose numbers are float32's
_FIXED = frozenset({"constant", "iota"})  # whose values are those that were seen

OWN, NARROWED, REACH, OPERANDS = 0, 1, 2, 3
"""Places in an equation's charge: its error as it is; in float32; the sum of its adjoints' magnitudes; from
there on, for each operand, the error of rounding it."""


@dataclass(eq=False)
class Weights(Sweep):
    """Charges are arrays as above; of an equation with bodies a dict of "operands" and "bodies".

    Of a body: "equations" has their charges, "results" for each output [rounding it, its reach], and "ran"
    1 for each time it ran. "operands" has the same pairs for each operand.
    """

    numbers_too: bool = True

    def skips(self, eq: Equation, cts: Sequence[Array | None]) -> bool:
        return all(ct is None for ct in cts)

    def _equation(self, program: Program, eq: Equation, operands, results, cts, exact, eager):
        if eq.op in IDENTITIES:
            return cts, self._alone(eq, operands, results, cts, cts)
        nested = eq.op in CALLED or eq.op in ("cond", "scan", "while")
        if not nested and not any(a.type.inexact for a in eq.inputs):
            return [None] * len(operands), self._alone(eq, operands, results, cts, [None] * len(operands))
        found, charges = super()._equation(program, eq, operands, results, cts, exact, eager)
        if not nested:
            return found, charges
        pairs = [_pair(a, x, ct) for a, x, ct in zip(eq.inputs, operands, found, strict=True)]
        return found, {"operands": pairs, "bodies": charges}

    def _body(self, body: Program, operands, cts, exact, eager):
        values = emission.all_values(body, operands)
        found, charges = self.back(body, values, cts, exact, eager)
        results = [_pair(a, emission.read(values, a), ct) for a, ct in zip(body.outputs, cts, strict=True)]
        return found, {"equations": charges, "results": results, "ran": jnp.ones(())}

    def charge(self, program: Program, eq: Equation, exact, operands, results, cts, of_operands) -> Charges:
        own = own_error(program, eq, operands, results)
        weights = [*cts, *of_operands[: len(own.operands)]]
        sizes = [*own.outputs, *own.operands]
        error = sum((_weighted(u, s) for u, s in zip(weights, sizes, strict=True)), jnp.zeros(()))
        dtype = next(v.type.dtype for v in (*eq.outputs, *eq.inputs) if v.type.inexact)
        return _charge(eq, unit(dtype) * error, _UNIT * error, operands, results, cts, of_operands)

    def _alone(self, eq: Equation, operands, results, cts, of_operands) -> Charges:
        """An equation that makes no error of its own, of numbers that float32 need not have."""
        rounded = jnp.zeros(())
        if eq.op in _FIXED:
            rounded = sum(_weighted(ct, _rounding(y)) for ct, y in zip(cts, results, strict=True))
        elif not any(a.type.inexact or a.type.dtype in _SMALL for a in eq.inputs):
            rounded = sum(_weighted(ct, _UNIT * abs(y)) for ct, y in zip(cts, results, strict=True))
        return _charge(eq, jnp.zeros(()), rounded, operands, results, cts, of_operands)


def _charge(eq: Equation, own: Array, narrowed: Array, operands, results, cts, of_operands) -> Array:
    outside = sum((_outside(y, ct) for y, ct in zip(results, cts, strict=True)), jnp.zeros(()))
    reach = sum((_reach(ct) for ct in cts), jnp.zeros(()))
    pairs = [_pair(a, x, ct) for a, x, ct in zip(eq.inputs, operands, of_operands, strict=True)]
    return jnp.stack([own, narrowed + outside, reach, *(pair[0] for pair in pairs)])


def _pair(atom: Any, x: Array, ct: Array | None) -> Array:
    """The error that rounding an operand makes, and how far it reaches."""
    if ct is None or atom.type.dtype not in NARROW:
        return jnp.zeros(2)
    size = _rounding(x) if isinstance(atom, Literal) else _UNIT * abs(x)
    return jnp.stack([_weighted(ct, size) + _outside(x, ct), _reach(ct)])


def _rounding(x: Any) -> Array:
    """The error of this very number; `reduce_precision`, since XLA may drop two conversions."""
    x = jnp.asarray(x)
    if jnp.issubdtype(x.dtype, jnp.complexfloating):
        return abs(_rounding(x.real) + 1j * _rounding(x.imag))
    if not jnp.issubdtype(x.dtype, jnp.inexact):
        return jnp.zeros(x.shape)
    return jnp.where(jnp.isfinite(x), abs(x - lax.reduce_precision(x, 8, 23)), 0)


def _outside(x: Any, ct: Array | None) -> Array:
    """What float32's range does: it has no large numbers, and what underflows is lost as a whole."""
    if not jnp.issubdtype(jnp.result_type(x), jnp.inexact):
        return jnp.zeros(())
    size = abs(jnp.asarray(x))
    lost = _weighted(ct, jnp.where(size < _TINY, size, 0))
    return jnp.where((jnp.isfinite(size) & (size > _LARGE)).any(), jnp.inf, lost)


def _reach(ct: Array | None) -> Array:
    return jnp.zeros(()) if ct is None else abs(ct).sum().astype(DTYPES["f64"])


def _weighted(ct: Array | None, size: Array | None) -> Array:
    """0 where the size is: the infinite derivative of sqrt at 0 magnifies nothing. Infinities are exact."""
    if ct is None or size is None:
        return jnp.zeros(())
    errs = (size != 0) & jnp.isfinite(size)
    products = jnp.where(errs, abs(ct) * jnp.where(errs, size, 1), 0)
    return products.sum().astype(DTYPES["f64"])
