"""The rounding errors that equations make themselves: bounds in units of roundoff.

Elementary functions have the errors of XLA's code for CPUs, with a margin. Sums and products of many terms
have the bound that holds in any order of summation. Factorisations are backward stable: theirs is the error
of another operand, relative to that operand's norm (Higham, Accuracy and Stability of Numerical Algorithms).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp
import numpy as np

from ...frontend import emission
from ...ir.program import Equation, Program
from ...ir.schema import names
from ...ir.types import Literal

EXACT = frozenset(
    names(
        """
        neg sign floor ceil is_finite abs real imag conj copy stop_gradient round select_n clamp max min
        nextafter broadcast_in_dim reshape squeeze transpose rev concatenate pad slice split iota
        constant dim_size optimization_barrier dynamic_slice dynamic_update_slice gather scatter
        scatter_min scatter_max reduce_max reduce_min argmax argmin cummax cummin sort top_k
        reduce_window_max reduce_window_min saveable complex select_and_gather_add bitcast_convert_type
        lu_pivots_to_permutation rem
        """
    )
)

_ROUNDOFFS = {
    **dict.fromkeys(names("add sub mul sqrt square reduce_precision"), 1.0),
    "div": 2.0,  # XLA multiplies with the reciprocal of a constant
    **dict.fromkeys(names("exp exp2 log log2 expm1 log1p tanh logistic sin cos rsqrt cbrt atan2"), 8.0),
    **dict.fromkeys(names("tan asin acos atan sinh cosh asinh acosh atanh one_minus_square pow"), 16.0),
    **dict.fromkeys(names("erf erfc erf_inv lgamma digamma bessel_i0e bessel_i1e"), 64.0),
}
_OTHERS = 256.0  # of special functions
_BACKWARD_STABLE = frozenset(
    names(
        """
        qr geqrf geqp3 ormqr eigh eig hessenberg schur tridiagonal svd householder_product
        tridiagonal_solve
        """
    )
)
_SUMS = frozenset(
    names(
        """
        reduce_sum cumsum reduce_window_sum select_and_scatter_add
        """
    )
)

Array = Any


@dataclass(frozen=True)
class OwnError:
    """By output and by operand, in units of roundoff times these numbers; None, no error.

    terms: of a sum, the sum of its terms' magnitudes by operand; what cancels is that over the result.
    """

    outputs: Sequence[Array]
    operands: Sequence[Array] = ()
    terms: Sequence[Array] = ()


def own_error(
    program: Program, eq: Equation, operands: Sequence[Array], results: Sequence[Array]
) -> OwnError:
    absolute: list[Array] = [abs(y) if jnp.issubdtype(y.dtype, jnp.inexact) else None for y in results]
    factor = 4.0 if any(v.type.dtype in ("c64", "c128") for v in eq.outputs) else 1.0
    if is_exact(eq):
        return OwnError([None] * len(results))

    def again(changed: Sequence[Array], **attrs: Any) -> Array:
        return emission.apply(program, replace(eq, attrs={**eq.attrs, **attrs}), changed)[0]

    attrs: Any = eq.attrs
    match eq.op:
        case "add" | "sub":
            return OwnError([factor * absolute[0]], (), [abs(jnp.asarray(x)) for x in operands])
        case "convert_element_type":
            return OwnError([absolute[0]])
        case "integer_pow":
            return OwnError([factor * (abs(attrs["y"]) + 1) * absolute[0]])
        case op if op in _ROUNDOFFS:
            return OwnError([factor * _ROUNDOFFS[op] * absolute[0]])
        case op if op in _SUMS:
            terms = again([abs(x) for x in operands])
            count = max(1, math.prod(operands[0].shape) // max(1, math.prod(results[0].shape)))
            count = operands[0].shape[attrs["axis"]] if op == "cumsum" else count
            count = math.prod(attrs["window"]) if "window" in attrs else count
            return OwnError([count * terms], (), [terms])
        case "scatter_add" | "scatter_sub":
            return _scattered(again, eq, operands)
        case "dot_general" | "conv_general_dilated":
            terms = again([abs(x) for x in operands]).real
            return OwnError([factor * _products(eq, operands) * terms], (), [terms])
        case "reduce_prod" | "cumprod":
            return OwnError([factor * max(operands[0].shape, default=1) * absolute[0]])
        case "cumlogsumexp":
            return OwnError([(16.0 + operands[0].size) * jnp.maximum(absolute[0], 1)])
        case "fft":
            return OwnError([8.0 * math.log2(max(2, operands[0].size)) * _norm(absolute[0])])
        case "triangular_solve":
            return OwnError(absolute, [factor * (operands[0].shape[-1] + 1) * abs(operands[0])])
        case "cholesky" | "lu":
            size = operands[0].shape[-1] + 1
            return OwnError(
                absolute, [factor * size * jnp.full(operands[0].shape, _largest(abs(operands[0])))]
            )
        case op if op in _BACKWARD_STABLE:
            size = max(x.shape[-1] for x in operands if x.ndim)
            norms = [2.0 * size * _norm(abs(x)) if _inexact(x) else None for x in operands]
            return OwnError([None if y is None else factor * y for y in absolute], norms)
    return OwnError([None if y is None else _OTHERS * jnp.maximum(y, _largest(y)) for y in absolute])


def is_exact(eq: Equation) -> bool:
    """Also a product with a power of two, a sum with 0, a conversion to what holds all numbers."""
    numbers = [a.value for a in eq.inputs if isinstance(a, Literal)]
    match eq.op:
        case "mul" | "div" if numbers and not isinstance(numbers[-1], complex):
            last = float(numbers[-1])
            divides = eq.op == "mul" or isinstance(eq.inputs[1], Literal)
            return divides and last != 0 and math.isfinite(last) and abs(math.frexp(last)[0]) == 0.5
        case "add" | "sub":
            return 0 in numbers
        case "convert_element_type":
            return _holds(eq.outputs[0].type.dtype, eq.inputs[0].type.dtype)
    return eq.op in EXACT


_DIGITS = {"f64": 53, "c128": 53, "f32": 24, "c64": 24, "f16": 11, "bf16": 8, "bool": 1}


def _holds(wide: str, narrow: str) -> bool:
    digits = _DIGITS.get(narrow, int(narrow[1:]) if narrow[1:].isdigit() else 64)
    return _DIGITS.get(wide, 0) >= digits and (wide, narrow) != ("f16", "bf16")


def _scattered(again: Callable[..., Array], eq: Equation, operands: Sequence[Array]) -> OwnError:
    x, indices, updates = operands
    added = [abs(x), indices, abs(updates) if eq.op == "scatter_add" else -abs(updates)]
    ones = [
        jnp.zeros_like(abs(x)),
        indices,
        jnp.ones_like(abs(updates)) * (1 if eq.op == "scatter_add" else -1),
    ]
    terms = again(added)
    return OwnError([again(ones) * terms], (), [terms])


def _products(eq: Equation, operands: Sequence[Array]) -> int:
    """How many products there are in one element."""
    if eq.op == "dot_general":
        axes: Any = eq.attrs["lhs_contract"]
        return max(1, math.prod(operands[0].shape[axis] for axis in axes))
    spec: Any = eq.attrs["rhs_spec"]
    return max(1, math.prod(operands[1].shape) // max(1, operands[1].shape[spec[0]]))


def _norm(x: Array) -> Array:
    return jnp.full(x.shape, jnp.sqrt((x * x).sum()))


def _largest(x: Array) -> Array:
    return x.max() if x.size else jnp.zeros((), x.dtype)


def _inexact(x: Array) -> bool:
    return bool(jnp.issubdtype(np.result_type(x), jnp.inexact))
