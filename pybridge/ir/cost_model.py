"""Whether XLA runs a Program at least as fast as a native kernel would, estimated from its equations.

Times are of one core and rough: they need only tell apart what differs by a tenth or more. Whether they do is
measured by `python -m benchmarks.sweep`, which the rates below are from, primitive by primitive, and by
`pybridge bench --suite choices` (docs/measurements/choices.md).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

from .cost_work import dtype, elements, elements_of, kind, size, stacked, units
from .dead_code import is_symbolic
from .deferred import remembered
from .program import Equation, Program
from .schema import OPERATIONS, names


@dataclass(frozen=True)
class Times:
    """Nanoseconds natively, and by XLA."""

    native: float
    xla: float

    def __add__(self, other: Times) -> Times:
        return Times(self.native + other.native, self.xla + other.xla)

    def __mul__(self, count: float) -> Times:
        return Times(count * self.native, count * self.xla)


NOTHING = Times(0.0, 0.0)


@dataclass(frozen=True)
class Work:
    """What an equation takes. units: of work, on numbers of four bytes; fixed: whatever the work is."""

    op: str
    dtype: str
    units: float
    rate: Times
    fixed: Times = NOTHING

    @property
    def times(self) -> Times:
        return self.rate * self.units + self.fixed

    def repeated(self, count: float) -> Work:
        """In a loop of so many iterations."""
        return replace(self, units=self.units * count, fixed=(self.fixed + _STEP) * count)


ONE_LOOP = "XLA makes one loop of it, as fast as a kernel and compiled sooner"
CONSTANT = "it has no arrays for arguments: XLA writes its results in one loop, or has them when it compiles"
ROUTINES = "XLA's routines are faster for most of what it does"

_CALL = Times(1e3, 1.3e4)
"""Of a call. XLA hands operations that it cannot put into one loop to threads."""
_LOOP_CALL, _SERIES_CALL = Times(1e3, 4e3), Times(1e3, 1.8e4)
"""Of a call of what is one loop for XLA, and where that has series."""
_WORTHWHILE = 0.9
"""The part of a kernel's time below which XLA's has to be."""
_STEP = Times(0, 5)
"""Of an equation each time that it runs in a loop: XLA's operations pass through memory."""
_SHORT = 1 << 10
"""Elements that a Program computes at most to be left to XLA as one loop: with more, XLA calls it by a thread
pool, which takes longer than a kernel."""
_LONG = 1 << 17
"""Elements from which on that does not matter."""


@remembered(maxsize=1024)
def reason_for_xla(program: Program) -> str | None:
    """Why XLA is to run the Program, if it is."""
    if is_symbolic(program) or any(eq.op in _NATIVE_ALONE for eq in program.all_equations()):
        return None
    if _is_constant(program):
        return CONSTANT
    if _is_short_loop(program):
        return ONE_LOOP
    taken = times(program)
    return ROUTINES if taken.xla < _WORTHWHILE * taken.native else None


_NATIVE_ALONE = frozenset({"while", "while_passes"})
"""What XLA needs bounds for, or keeps no residuals of."""

_ARITHMETIC = frozenset(
    names(
        """
        neg sign floor ceil is_finite square one_minus_square abs real imag conj not stop_gradient copy
        add sub mul div max min and or xor eq ne lt le gt ge complex select_n clamp convert_element_type
        """
    )
)
_LAYOUT = frozenset(names("broadcast_in_dim reshape squeeze transpose rev slice iota"))
_ONE_LOOP = _ARITHMETIC | _LAYOUT
"""Primitives of which XLA makes one loop, as fast as any."""
_ONE_LOOP_OF_CONSTANTS = _ONE_LOOP | {"pad", "concatenate"}
_SERIES = frozenset(
    names(
        """
        lgamma digamma polygamma zeta bessel_i0e bessel_i1e erf_inv igamma igammac igamma_grad_a
        regularized_incomplete_beta
        """
    )
)
"""What XLA hands to threads, few elements as they may be."""


def _is_short_loop(program: Program) -> bool:
    return (
        len(program.outputs) == 1
        and all(eq.op in _ONE_LOOP for eq in program.equations)
        and sum(map(elements, program.equations)) <= _SHORT
    )


def _is_constant(program: Program) -> bool:
    computed = sum(map(elements, program.equations))
    return (
        all(elements_of(x) <= 1 for x in program.inputs)
        and all(eq.op in _ONE_LOOP_OF_CONSTANTS for eq in program.equations)
        and (computed <= _SHORT or (computed >= _LONG and len(program.outputs) == 1))
    )


def _call(program: Program) -> Times:
    if any(eq.op in _SERIES for eq in program.equations):
        return _SERIES_CALL
    elementwise = all(OPERATIONS[eq.op].elementwise or eq.op in _LAYOUT for eq in program.equations)
    return _LOOP_CALL if elementwise and len(program.outputs) == 1 else _CALL


def times(program: Program) -> Times:
    """Of a call."""
    return sum((work.times for work in works(program)), start=_call(program))


def works(program: Program) -> Iterator[Work]:
    """What takes time in a call, loops and nested Programs included."""
    yield from _inner_works(program)
    for atom in set(program.outputs) & set(program.inputs):
        yield Work("returned_input", atom.type.dtype, size(atom), _RETURNED_INPUT)


def _inner_works(program: Program) -> Iterator[Work]:
    for eq in program.equations:
        nested = [work for body in eq.running_bodies for work in _inner_works(body)]
        if eq.op == "scan":
            yield from (work.repeated(eq.attrs["length"]) for work in nested)
        elif nested:
            yield from nested
        else:
            row, column = kind(eq), dtype(eq)
            yield Work(row, column, units(eq), _rate(row, column), _fixed(eq))


def _fixed(eq: Equation) -> Times:
    if eq.op == "dot_general":
        return _PAIR * stacked(eq)
    return _FIXED.get(eq.op, NOTHING)


def _rate(row: str, dtype: str) -> Times:
    column = dtype if dtype in _COLUMNS else _OTHERS.get(dtype, "f32")
    usual = "layout" if row in _LAYOUT else "arithmetic" if row in _ARITHMETIC else "function"
    return _RATES.get((row, column)) or _RATES[usual, column]


# ---- nanoseconds of a unit of work on numbers of four bytes

_RETURNED_INPUT = Times(0.65, 0.3)
"""Of an input that is an output, too: both copy it."""
_PAIR = Times(10, 400)
"""Of each pair of a stack of matrices that are multiplied."""
_FIXED = {"conv_general_dilated": Times(0, 8e3), "fft": Times(0, 1e4)}
"""Of what XLA hands to threads by itself."""

_COLUMNS = ("f32", "f64", "bf16", "f16", "c64")
_OTHERS = {"c128": "c64"}
"""The column of what is no integer and has none."""

# Natively and by XLA, for each of `_COLUMNS`. Julia computes with numbers of two bytes one by one, those of
# float16 by functions; XLA in float32. `python -m benchmarks.sweep --fit` shows what measurements imply.
_TABLE = """
function                     0.6   1       0.9   1       2     2.5     100   2.5     3     3
arithmetic                   0.1   0.1     0.1   0.1     0.15  0.14    50    0.3     0.1   0.1
layout                       0.1   0.1     0.1   0.1     0.1   0.1     0.1   0.1     0.1   0.1
convert_element_type         0.1   0.1     0.1   0.1     0.1   0.1     4     0.3     0.1   0.1
div                          0.3   0.25    0.3   0.3     0.4   0.45    50    0.3     0.9   1.5
sqrt                         0.3   0.3     0.7   0.8     0.8   0.9     80    1.5     0.5   2.2
rsqrt                        0.2   0.25    0.4   0.5     1.8   3.8     80    2       3     3
exp,exp2,expm1               0.35  0.6     1     1       1.7   2.4     130   3       1.2   6.2
log,log2                     0.5   0.65    1.4   11      1.5   2.2     120   3       2.5   20
log1p                        0.75  1.2     1.5   7.7     2.7   4.1     80    2.7     1.5   13
sin,cos,tan                  0.6   8       1.3   7.4     8     18      80    16      2.4   7.5
asin,acos,atan               0.9   27      1.1   18      1.7   50      80    58      3     3
atan2                        1.3   32      3.8   19      2.3   47      110   70      3     3
tanh                         0.4   0.4     0.7   0.6     1.6   2.1     200   1.3     3.5   7.3
logistic                     0.5   0.65    0.75  1.2     3.2   5.7     130   1.8     3.6   8.3
pow                          3.1   7.2     3.2   10      5.5   15      140   18      66    40
integer_pow                  0.35  0.33    0.35  0.33    0.6   0.65    70    0.5     0.3   0.3
erf                          0.54  0.38    3.3   5.3     1.7   1.3     180   1.7     -     -
erf_inv                      1.3   2.6     6.3   13      6.7   12      200   9       -     -
lgamma                       19    12      11    23      45    26      115   36      -     -
digamma                      20    11      13    23      48    26      140   39      -     -
polygamma,zeta               500   77      340   110     1100  170     1400  190     -     -
bessel_i0e,bessel_i1e        55    1       30    6.5     150   5       154   5       -     -
igamma                       77    62      53    120     170   500     270   620     -     -
igammac                      74    58      74    150     175   500     310   620     -     -
igamma_grad_a                150   130     110   250     340   240     250   400     -     -
regularized_incomplete_beta  240   93      140   250     520   200     600   200     -     -
reduce_sum,reduce_prod       0.17  0.2     0.18  0.2     0.6   8       4     0.2     0.2   0.2
reduce_max,reduce_min        0.15  0.17    0.15  0.17    0.3   0.15    6     0.2     -     -
cumsum_of_short              1.6   4.3     1.6   3.5     4.6   51      28    11      1.7   6.2
cumsum,cumprod               1.6   4.3     1.6   3.5     4.6   51      10    25      1.7   6.2
cummax,cummin,cumlogsumexp   4     18      2.3   9.4     13    180     12    21      -     -
argmax,argmin                5.3   5.6     3     5.2     8.7   11.5    11    7       -     -
sort                         7.9   16      5     12.6    14    36      18    27      6     13
top_k                        0.8   1.2     1.3   218     1.2   389     0.5   240     -     -
strided_slice                0.3   0.12    0.2   0.12    0.1   0.1     0.1   0.1     0.2   0.06
rev                          0.1   0.1     0.1   0.1     0.13  0.1     0.13  0.1     0.1   0.1
transpose                    0.45  0.25    0.42  0.2     1.7   0.7     1.7   0.7     0.4   0.15
gather                       0.9   0.9     1.1   1.1     1.6   1.3     1.6   1.3     1     1
scatter_add_numbers          3     2.4     1.9   1.3     10    10      50    8       2     2
scatter_add                  3     3.9     1.9   1.9     10    10      50    8       2     2
concatenate                  0.5   0.45    0.4   0.35    0.5   0.4     0.5   0.4     0.4   0.35
pad                          0.2   0.35    0.3   0.33    0.4   0.7     0.4   0.7     0.3   0.3
dynamic_update_slice,scatter 0.2   0.2     0.2   0.2     0.2   0.2     0.2   0.2     0.2   0.2
optimization_barrier         0.05  0.05    0.05  0.05    0.05  0.05    0.05  0.05    0.05  0.05
dot_general                  0.016 0.016   0.016 0.016   0.3   0.02    8     0.08    0.05  0.1
dot_outer                    0.045 0.033   0.085 0.038   0.35  0.02    9     0.2     0.1   0.14
dot_vector                   0.16  0.17    0.2   0.21    0.27  1       45    1.4     0.33  0.38
dot_cached_vector            0.08  0.05    0.07  0.045   0.25  0.35    4.8   0.5     0.08  0.05
conv_general_dilated         0.033 0.036   0.041 0.6     7.5   0.09    9     0.1     0.1   0.075
conv_of_features             1.9   5       1.9   5.5     5     9       8     12      1.35  7
conv_of_batches              6     2       5.3   0.8     8     1       12    2       2.9   5
reduce_window_max            0.3   0.7     0.4   0.7     4     0.9     8     1       -     -
reduce_window_sum            0.2   0.35    0.26  0.35    5.8   11      19    3.3     0.3   0.3
select_and_scatter_add       4.9   15      2.3   6.4     6.7   24      20    21      -     -
fft                          0.3   0.2     0.3   0.25    -     -       -     -       0.32  0.21
cholesky                     0.02  0.025   0.012 0.009   -     -       -     -       0.022 0.014
qr                           0.06  0.045   0.055 0.042   -     -       -     -       0.17  0.13
geqrf,householder_product    0.033 0.025   0.033 0.025   -     -       -     -       0.03  0.025
lu                           0.03  0.03    0.03  0.03    -     -       -     -       0.03  0.03
eigh                         0.57  0.4     0.54  0.44    -     -       -     -       0.77  0.6
svd                          0.8   0.5     0.8   0.5     -     -       -     -       0.95  0.7
singular_values              0.25  0.24    0.3   0.3     -     -       -     -       0.98  0.88
triangular_solve_vector      0.028 0.095   0.028 0.095   -     -       -     -       0.07  0.04
triangular_solve             0.028 0.095   0.028 0.095   -     -       -     -       0.07  0.075
"""
"""The first three rows are of what has none, or no numbers there."""


def _read(table: str) -> Iterator[tuple[tuple[str, str], Times]]:
    for row in table.strip().splitlines():
        ops, *numbers = row.split()
        pairs = zip(_COLUMNS, numbers[::2], numbers[1::2], strict=True)
        for op, (column, native, xla) in itertools.product(ops.split(","), pairs):
            if native != "-":
                yield (op, column), Times(float(native), float(xla))


_RATES = dict(_read(_TABLE))
