"""What an eval sends, read with the path of what does not fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import ArgumentError


@dataclass(frozen=True)
class Input:
    """A JSON value and where it stands in the message."""

    value: Any
    path: str = "input"

    def __contains__(self, field: str) -> bool:
        return isinstance(self.value, dict) and field in self.value

    def at(self, field: str) -> Input:
        """The value of a field."""
        if field not in self:
            raise ArgumentError(f"{self.path} has no field {field!r}")
        return Input(self.value[field], f"{self.path}.{field}")

    def number(self) -> float:
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            raise self._is_no("number")
        return float(self.value)

    def integer(self, at_least: int) -> int:
        if isinstance(self.value, bool) or not isinstance(self.value, int) or self.value < at_least:
            raise self._is_no(f"integer of at least {at_least}")
        return self.value

    def boolean(self) -> bool:
        if not isinstance(self.value, bool):
            raise self._is_no("boolean")
        return self.value

    def floats(self, *shape: int | None) -> np.ndarray:
        """A float64 array of that shape; None stands for any size."""
        return self._array(np.float64, "fiu", shape)

    def indices(self, bound: int, *shape: int | None) -> np.ndarray:
        """An array of integers from 0 to under `bound`."""
        array = self._array(np.int64, "iu", shape)
        if np.any((array < 0) | (array >= bound)):
            raise ArgumentError(f"{self.path} has an index that is not from 0 to {bound - 1}")
        return array

    def _array(self, dtype: type, kinds: str, shape: tuple[int | None, ...]) -> np.ndarray:
        wanted = (
            f"array of {np.dtype(dtype).name}, [{', '.join('any' if n is None else str(n) for n in shape)}]"
        )
        try:
            array = np.asarray(self.value)
        except ValueError:  # lists of unequal lengths
            raise self._is_no(wanted) from None
        if (
            array.size == 0 and None in shape
        ):  # an empty list says nothing of its inner lengths, or of its type
            array = np.zeros([0 if n is None else n for n in shape])
        elif array.dtype.kind not in kinds:
            raise self._is_no(wanted)
        if array.ndim != len(shape) or any(
            n not in (None, m) for n, m in zip(shape, array.shape, strict=True)
        ):
            raise ArgumentError(f"{self.path} has the shape {list(array.shape)}, and is to be an {wanted}")
        return array.astype(dtype)

    def _is_no(self, wanted: str) -> ArgumentError:
        text = repr(self.value)
        shown = text if len(text) <= 40 else f"{text[:37]}..."
        article = "an" if wanted[0] in "aeiou" else "a"
        return ArgumentError(f"{self.path} is to be {article} {wanted}, and is {shown}")
