"""The values of Programs: their types, variables and literals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ..errors import ProgramTypeError
from .dims import check_dimension
from .numerals import DTYPES, bits, format_number, is_inexact, normalise

MAX_BYTES = 2**47
"""Of an array, axes of size 0 counting as 1: the address space of a process. What no machine could hold is
refused where it is made or read, so that no product of sizes overflows (julia/src/ir/program.jl too)."""
MAX_RANK = 64
"""That of numpy's arrays."""


@dataclass(frozen=True, slots=True)
class SymDim:
    """A symbolic dimension: an expression in dimension variables, such as `2*b + 1` (see `dims`)."""

    text: str

    def __post_init__(self) -> None:
        check_dimension(self.text)

    def __str__(self) -> str:
        return f"<{self.text}>"


Dim = int | SymDim


@dataclass(frozen=True, slots=True)
class TensorType:
    """dtype (a key of `numerals.DTYPES`) and shape of a value.

    Raises ProgramTypeError for what is no dtype or dimension, or is larger than MAX_BYTES or MAX_RANK.
    """

    dtype: str
    shape: tuple[Dim, ...] = ()

    def __post_init__(self) -> None:
        if self.dtype not in DTYPES:
            raise ProgramTypeError(f"{self.dtype} is not a dtype; there are {', '.join(DTYPES)}")
        if len(self.shape) > MAX_RANK:
            raise ProgramTypeError(f"an array of {len(self.shape)} axes has more than {MAX_RANK}")
        size = DTYPES[self.dtype].itemsize
        for dim in self.shape:
            if isinstance(dim, SymDim):
                continue
            if type(dim) is not int or dim < 0:
                raise ProgramTypeError(f"{dim!r} is not a dimension")
            size *= dim or 1
            if size > MAX_BYTES:
                raise ProgramTypeError(f"{self} has more than 2^47 bytes")

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def inexact(self) -> bool:
        return is_inexact(self.dtype)

    @property
    def bytes(self) -> int:
        """What an array takes; symbolic dimensions count as 1."""
        return math.prod(n for n in self.shape if isinstance(n, int)) * DTYPES[self.dtype].itemsize


@dataclass(frozen=True, slots=True)
class Var:
    """A variable; inside a Program `id` is its place in the order of binding."""

    id: int
    type: TensorType

    def __str__(self) -> str:
        return f"%{self.id}"


@dataclass(frozen=True, slots=True, eq=False)
class Literal:
    """A rank-0 constant, exact in its dtype. NaN equals NaN, and -0.0 differs from 0.0."""

    value: bool | int | float | complex
    dtype: str

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "value", normalise(self.value, self.dtype))
        except KeyError:
            raise ProgramTypeError(f"a literal cannot have the dtype {self.dtype}") from None
        except OverflowError as e:
            raise ProgramTypeError(str(e)) from None

    @property
    def type(self) -> TensorType:
        return TensorType(self.dtype)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Literal):
            return NotImplemented
        return self.dtype == other.dtype and content_key(self.value) == content_key(other.value)

    def __hash__(self) -> int:
        return hash((self.dtype, content_key(self.value)))

    def __str__(self) -> str:
        return f"{format_number(self.value, self.dtype)}:{self.dtype}"


Atom = Var | Literal
Value = Any
"""Of an attribute: bool | int | float | str | None | SymDim | tuple[Value, ...] | Program."""


def content_key(value: Value) -> Any:
    """A hashable that tells apart what prints apart: 1, 1.0 and true; 0.0 and -0.0; but no two NaNs."""
    match value:
        case float():
            return ("float", bits(value))
        case complex():
            return ("complex", bits(value.real), bits(value.imag))
        case tuple():
            return tuple(map(content_key, value))
        case _:
            return (type(value).__name__, value)
