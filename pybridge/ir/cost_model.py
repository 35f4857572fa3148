"""Whether XLA runs a Program at least as fast as a native kernel would, estimated from its equations.

Times are of one core and rough: they need only tell apart what differs by a tenth or more. Whether they do is
measured by `pybridge bench --suite choices` (docs/choices.md), which the rates below are from.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

from .dead_code import is_symbolic
from .deferred import remembered
from .numerals import DTYPES
from .program import Equation, Program
from .schema import names
from .types import Atom


@dataclass(frozen=True)
class Times:
    """Nanoseconds natively, and by XLA."""

    native: float
    xla: float

    def __add__(self, other: Times) -> Times:
        return Times(self.native + other.native, self.xla + other.xla)

    def __mul__(self, count: float) -> Times:
        return Times(count * self.native, count * self.xla)


ONE_LOOP = "XLA makes one loop of it, as fast as a kernel and compiled sooner"
ROUTINES = "XLA's routines are faster for most of what it does"

_CALL = Times(1e3, 2e4)
"""Of a call. XLA hands operations that it cannot put into one loop to threads."""
_WORTHWHILE = 0.9
"""The part of a kernel's time below which XLA's has to be."""
_LOOP_IN_XLA = 1.5
"""A factor for what XLA repeats in a loop: its operations pass through memory, and copy what they update."""
_SHORT = 1 << 10
"""Elements that a Program computes at most to be left to XLA as one loop: with more, XLA calls it by a thread
pool, which takes longer than a kernel."""


@remembered(maxsize=1024)
def reason_for_xla(program: Program) -> str | None:
    """Why XLA is to run the Program, if it is."""
    if is_symbolic(program) or any(eq.op in _NATIVE_ALONE for eq in program.all_equations()):
        return None
    if _is_one_loop(program):
        return ONE_LOOP
    times = _CALL + _times(program)
    return ROUTINES if times.xla < _WORTHWHILE * times.native else None


_NATIVE_ALONE = frozenset({"while", "while_passes"})
"""What XLA needs bounds for, or keeps no residuals of."""

_ONE_LOOP = frozenset(
    names(
        """
        neg sign floor ceil is_finite square one_minus_square abs real imag conj not stop_gradient copy
        add sub mul div max min and or xor eq ne lt le gt ge complex select_n clamp convert_element_type
        broadcast_in_dim reshape squeeze transpose rev slice iota
        """
    )
)
"""Primitives of which XLA makes one loop, as fast as any."""


def _is_one_loop(program: Program) -> bool:
    return (
        len(program.outputs) == 1
        and all(eq.op in _ONE_LOOP for eq in program.equations)
        and sum(map(_elements, program.equations)) <= _SHORT
    )


def _times(program: Program) -> Times:
    return sum(map(_equation_times, program.equations), start=Times(0, 0))


def _equation_times(eq: Equation) -> Times:
    bodies = sum(map(_times, eq.running_bodies), start=Times(0, 0))
    if eq.op == "scan":
        return Times(bodies.native, _LOOP_IN_XLA * bodies.xla) * eq.attrs["length"]
    if bodies != Times(0, 0):
        return bodies
    if eq.op == "dot_general":
        return _product_times(eq)
    return _rate(eq) * (_WORK.get(eq.op, _elements)(eq) * _itemsize(eq) / 4)


def _rate(eq: Equation) -> Times:
    rate = _RATES.get(eq.op, _MOVE if eq.op in _ONE_LOOP else _FUNCTION)
    if _dtype(eq) == "f32":
        return _F32.get(eq.op, rate)
    if _dtype(eq) != "f16" or eq.op in _LAYOUT:
        return rate
    return Times(_F16.get(eq.op, _F16_FUNCTION), rate.xla)


def _product_times(eq: Equation) -> Times:
    """XLA multiplies stacks of matrices pair by pair, and is ahead in large results of few terms."""
    left, right = map(_shape, eq.inputs)
    contracted, batch = (math.prod(left[k] for k in eq.attrs[n]) for n in ("lhs_contract", "lhs_batch"))
    rows, columns = (math.prod(shape) // max(1, contracted * batch) for shape in (left, right))
    work = batch * rows * columns * contracted
    wide = batch == 1 and 1 < contracted <= _FEW_TERMS and work >= _LARGE_PRODUCT
    rate = _HALF_PRODUCTS.get(_dtype(eq), _WIDE_PRODUCT if wide else _PRODUCT)
    times = rate * (work * _itemsize(eq) / 4)
    return times if batch == 1 else times + _PAIR * batch


# ---- work, in elements or in multiplications


def _shape(atom: Atom) -> tuple[int, ...]:
    return cast(tuple[int, ...], atom.type.shape)  # of Programs without symbolic dimensions


def _dtype(eq: Equation) -> str:
    """Of the numbers that it computes with."""
    return max(eq.inputs, key=lambda atom: math.prod(_shape(atom)), default=eq.outputs[0]).type.dtype


def _elements(eq: Equation) -> float:
    """Of the largest array."""
    return max(math.prod(_shape(atom)) for atom in (*eq.inputs, *eq.outputs))


def _itemsize(eq: Equation) -> int:
    return max((DTYPES[v.type.dtype].itemsize for v in eq.outputs), default=4)


def _convolved(eq: Equation) -> float:
    kernel = _shape(eq.inputs[1])
    return math.prod(_shape(eq.outputs[0])) * math.prod(kernel) / max(1, kernel[eq.attrs["rhs_spec"][0]])


def _transformed(eq: Equation) -> float:
    return _elements(eq) * math.log2(max(2, math.prod(eq.attrs["fft_lengths"])))


def _sorted(eq: Equation) -> float:
    return _elements(eq) * math.log2(max(2, max(_shape(eq.inputs[0]), default=2)))


def _factored(eq: Equation) -> float:
    """Rows times columns times the fewer of both, of each matrix."""
    shape = _shape(eq.inputs[0])
    return math.prod(shape) * min(shape[-2:])


_WORK: Mapping[str, Callable[[Equation], float]] = {
    "conv_general_dilated": _convolved,
    "fft": _transformed,
    "sort": _sorted,
    **dict.fromkeys(
        ("cholesky", "eigh", "qr", "geqrf", "householder_product", "lu", "svd", "triangular_solve"), _factored
    ),
}

# ---- nanoseconds of a unit of work on numbers of four bytes

_PRODUCT = Times(0.016, 0.016)
_WIDE_PRODUCT = Times(0.045, 0.033)
_FEW_TERMS, _LARGE_PRODUCT = 16, 2_000_000
_PAIR = Times(10, 400)
"""Of each pair of a stack of matrices."""

# Julia computes with numbers of two bytes one by one, those of float16 by functions; XLA in float32.
_HALF_PRODUCTS = {"f16": Times(4.8, 0.06), "bf16": Times(0.13, 0.03)}

_MOVE = Times(0.1, 0.1)
_FUNCTION = Times(0.6, 1.0)

_RATES: Mapping[str, Times] = {
    **dict.fromkeys(("sin", "cos", "tan"), Times(0.5, 8.0)),
    **dict.fromkeys(("reduce_sum", "reduce_max", "reduce_min", "reduce_prod"), Times(0.15, 0.2)),
    **dict.fromkeys(("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"), Times(0.9, 5.0)),
    **dict.fromkeys(("lgamma", "digamma"), Times(16.0, 16.0)),
    **dict.fromkeys(("polygamma", "zeta"), Times(450.0, 60.0)),
    **dict.fromkeys(("bessel_i0e", "bessel_i1e"), Times(25.0, 4.5)),
    "sort": Times(6.0, 13.0),
    "conv_general_dilated": Times(0.03, 0.04),
    "fft": Times(0.55, 0.25),
    "eigh": Times(0.8, 0.55),
    "qr": Times(0.2, 0.12),
    "geqrf": Times(0.1, 0.06),
    "householder_product": Times(0.1, 0.06),
    **dict.fromkeys(("cholesky", "lu", "triangular_solve"), Times(0.05, 0.05)),
    "svd": Times(0.35, 0.35),
}

_F32: Mapping[str, Times] = {
    "igamma": Times(200.0, 130.0),
    "igammac": Times(400.0, 175.0),
    "igamma_grad_a": Times(480.0, 260.0),
    "regularized_incomplete_beta": Times(170.0, 75.0),
}
"""Of float32: series that XLA computes in vectors, and in float64 ten times as long as Julia."""

_F16_FUNCTION = 30.0
"""Of float16 natively."""
_F16: Mapping[str, float] = {
    **dict.fromkeys(("add", "sub", "mul", "max", "min", "neg", "abs", "select_n", "div"), 20.0),
    **dict.fromkeys(("reduce_sum", "reduce_max", "reduce_min", "reduce_prod"), 4.0),
    **dict.fromkeys(("eq", "ne", "lt", "le", "gt", "ge", "convert_element_type"), 4.0),
    "sort": 6.0,
}
_LAYOUT = frozenset(
    names(
        """
        broadcast_in_dim reshape squeeze transpose rev slice iota copy stop_gradient concatenate pad gather
        dynamic_slice dynamic_update_slice
        """
    )
)
"""What computes nothing."""
