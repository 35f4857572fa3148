"""Elementwise primitives: one shape for all operands and the result."""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax

from ...ir.numerals import COMPLEX, DTYPES, dtype_name
from ...ir.schema import BINARY, UNARY
from ..adapter.integers import mulhi
from .spec import Spec

# Where the function of jax.lax has another name than the primitive.
_FUNCTIONS = {
    "not": lax.bitwise_not,
    "and": lax.bitwise_and,
    "or": lax.bitwise_or,
    "xor": lax.bitwise_xor,
    "copy": jnp.copy,
    "log2": jnp.log2,
    "mulhi": mulhi,
    "one_minus_square": getattr(lax, "one_minus_square", lambda x: (1 + x) * (1 - x)),  # since JAX 0.11
    "regularized_incomplete_beta": lax.betainc,
}

_LAX_NAMES = {"add": ("add", "add_any"), "copy": ("copy", "copy_p")}


def _round(x, *, method):
    return lax.round(x, lax.RoundingMethod(method))


def _integer_pow(x, *, y):
    return lax.integer_pow(x, y)


def _reduce_precision(x, *, exponent_bits, mantissa_bits):
    return lax.reduce_precision(x, exponent_bits, mantissa_bits)


def _bitcast_convert_type(x, *, dtype):
    return lax.bitcast_convert_type(x, DTYPES[dtype])


def _convert_element_type(x, *, dtype):
    # The real part explicitly: lax would warn that the imaginary one is lost.
    if jnp.iscomplexobj(x) and dtype not in COMPLEX and dtype != "bool":
        x = lax.real(x)
    return lax.convert_element_type(x, DTYPES[dtype])


def _select_n(which, *cases):
    # Only lax's predicate may have rank 0 where the others are arrays.
    shape = next((c.shape for c in cases if c.ndim), which.shape)
    return lax.select_n(which, *(lax.broadcast(c, shape) if not c.ndim else c for c in cases))


def _clamp(low, x, high):
    if not x.ndim:
        shape = next((bound.shape for bound in (low, high) if bound.ndim), ())
        x = lax.broadcast(x, shape)
    low, high = (lax.broadcast(b, x.shape) if x.ndim and not b.ndim else b for b in (low, high))
    return lax.clamp(low, x, high)


def _rounding(eqn):
    return {"method": int(eqn.params["rounding_method"].value)}


def _precision(eqn):
    return {name: int(eqn.params[name]) for name in ("exponent_bits", "mantissa_bits")}


SPECS = [
    *(
        Spec(op, _FUNCTIONS.get(op) or getattr(lax, op), lax=_LAX_NAMES.get(op))
        for op in (*UNARY, *BINARY, "regularized_incomplete_beta")
    ),
    Spec("round", _round, _rounding),
    Spec("integer_pow", _integer_pow, lambda eqn: {"y": int(eqn.params["y"])}),
    Spec(
        "reduce_precision",
        _reduce_precision,
        _precision,
    ),
    Spec(
        "convert_element_type",
        _convert_element_type,
        lambda eqn: {"dtype": dtype_name(eqn.params["new_dtype"])},
    ),
    Spec(
        "bitcast_convert_type",
        _bitcast_convert_type,
        lambda eqn: {"dtype": dtype_name(eqn.params["new_dtype"])},
    ),
    Spec("select_n", _select_n),
    Spec("clamp", _clamp),
]
