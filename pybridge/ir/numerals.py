"""Data types of Programs and the exact text of their numbers.

Numbers cross between Python and Julia as decimal text, so each is written as the shortest decimal
that reads back as the same number, in one normal form (docs/program.md, "Numbers are exact").
"""

from __future__ import annotations

import functools
import math
import struct
from decimal import Decimal

import ml_dtypes
import numpy as np

DTYPES: dict[str, np.dtype] = {
    "bool": np.dtype(np.bool_),
    **{f"i{n}": np.dtype(f"int{n}") for n in (8, 16, 32, 64)},
    **{f"u{n}": np.dtype(f"uint{n}") for n in (8, 16, 32, 64)},
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "c64": np.dtype(np.complex64),
    "c128": np.dtype(np.complex128),
}
"""Program dtype name -> numpy dtype; what is not here is not in the Program language."""

_NAMES = {dtype: name for name, dtype in DTYPES.items()}

FLOATS = frozenset({"f16", "bf16", "f32", "f64"})
COMPLEX = frozenset({"c64", "c128"})
INTEGERS = frozenset(name for name in DTYPES if name[0] in "iu")

# Literals of these are written with float32's shortest digits; f16 and bf16 widen to it exactly.
_SINGLE = frozenset({"f16", "bf16", "f32", "c64"})


def dtype_name(dtype) -> str | None:
    """The Program name of a numpy dtype, or None where Programs have no such dtype (float8, keys, ...)."""
    try:
        return _NAMES.get(np.dtype(dtype))
    except TypeError:  # extended dtypes, such as those of random keys
        return None


def is_inexact(dtype: str) -> bool:
    """Whether values of this dtype can carry tangents."""
    return dtype in FLOATS or dtype in COMPLEX


def integer_range(dtype: str) -> tuple[int, int]:
    """The least and largest value of an integer dtype."""
    info = np.iinfo(DTYPES[dtype])
    return int(info.min), int(info.max)


def normalise(value, dtype: str) -> bool | int | float | complex:
    """`value` rounded to `dtype`, as the Python number that widens it exactly.

    Raises OverflowError for an integer out of the dtype's range.
    """
    if dtype == "bool":
        return bool(value)
    if dtype in INTEGERS:
        value, (low, high) = int(value), integer_range(dtype)
        if not low <= value <= high:
            raise OverflowError(f"{value} is out of the range of {dtype}")
        return value
    if dtype in COMPLEX:
        part = "f32" if dtype == "c64" else "f64"
        value = complex(value)
        return complex(normalise(value.real, part), normalise(value.imag, part))
    value = float(value)
    if dtype == "f64":
        return value
    with np.errstate(over="ignore"):
        return float(DTYPES[dtype].type(value))


def bits(value: float) -> bytes:
    """A key under which -0.0 and 0.0 differ and every NaN is one."""
    return b"nan" if math.isnan(value) else struct.pack("<d", value)


def format_number(value, dtype: str) -> str:
    """The literal's text without its `:dtype`."""
    if dtype == "bool":
        return "true" if value else "false"
    if dtype in INTEGERS:
        return str(value)
    single = dtype in _SINGLE
    if dtype in COMPLEX:
        return f"({format_float(value.real, single)},{format_float(value.imag, single)})"
    return format_float(value, single)


@functools.lru_cache(maxsize=4096)
def _format_finite(value: float, single: bool) -> str:
    if single:
        shortest = np.format_float_scientific(np.float32(value), unique=True, trim="-")
    else:
        shortest = np.format_float_scientific(value, unique=True, trim="-")
    mantissa, _, power = shortest.partition("e")
    digits, exponent = mantissa.replace(".", ""), int(power)
    if not -5 <= exponent <= 15:
        return f"{digits[0]}.{digits[1:] or '0'}e{exponent}"
    if exponent < 0:
        return "0." + "0" * (-exponent - 1) + digits
    whole = digits[: exponent + 1].ljust(exponent + 1, "0")
    return f"{whole}.{digits[exponent + 1 :] or '0'}"


def format_float(value: float, single: bool = False) -> str:
    """The shortest decimal that reads back as `value`: as a float32 if `single`, else as a float64."""
    value = float(value)
    if math.isnan(value):
        return "nan"
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    if math.isinf(value):
        return sign + "inf"
    return sign + _format_finite(abs(value), single)


def read_float(text: str, single: bool = False) -> float:
    """The float64 (or float32, widened, if `single`) nearest to the decimal `text`, ties to even.

    Raises OverflowError for a finite decimal beyond the largest number.
    """
    value = float(text)
    if single and math.isfinite(value):
        value = _nearest_single(text, value)
    if math.isinf(value) and not text.endswith("inf"):
        raise OverflowError(f"{text} is beyond the largest number")
    return value


def _nearest_single(text: str, value: float) -> float:
    """Rounding to float64 and then to float32 errs where the first step lands halfway between two float32."""
    with np.errstate(over="ignore"):
        rounded = np.float32(value)
        if not np.isfinite(rounded) or float(rounded) == value:
            return float(rounded)
        other = np.nextafter(rounded, np.float32(math.copysign(math.inf, value - float(rounded))))
    if np.isfinite(other) and (float(rounded) + float(other)) / 2 == value:
        exact, halfway = Decimal(text), Decimal(value)
        if exact != halfway:
            return float(max(rounded, other) if exact > halfway else min(rounded, other))
    return float(rounded)
