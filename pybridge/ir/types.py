"""The values of Programs: their types, variables and literals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..errors import ProgramTypeError
from .numerals import DTYPES, bits, format_number, is_inexact, normalise


@dataclass(frozen=True, slots=True)
class SymDim:
    """A symbolic dimension: an expression in dimension variables, such as `2*b + 1`."""

    text: str

    def __post_init__(self) -> None:
        if not self.text.strip() or ">" in self.text or "\n" in self.text:
            raise ProgramTypeError(f"{self.text!r} is not a symbolic dimension")

    def __str__(self) -> str:
        return f"<{self.text}>"


Dim = int | SymDim


@dataclass(frozen=True, slots=True)
class TensorType:
    """dtype (a key of `numerals.DTYPES`) and shape of a value."""

    dtype: str
    shape: tuple[Dim, ...] = ()

    def __post_init__(self) -> None:
        if self.dtype not in DTYPES:
            raise ProgramTypeError(f"{self.dtype} is not a dtype; there are {', '.join(DTYPES)}")
        for dim in self.shape:
            if not isinstance(dim, SymDim) and (type(dim) is not int or dim < 0):
                raise ProgramTypeError(f"{dim!r} is not a dimension")

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def inexact(self) -> bool:
        return is_inexact(self.dtype)


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
