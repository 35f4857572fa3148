"""Files that reproduce by themselves what an engine does wrong: a Program, a point, and directions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..ir.numerals import DTYPES, dtype_name
from ..ir.program import Program

_LONGEST = 4000
"""Arrays of more elements are written as bytes."""


def case_text(
    doc: str,
    module: str,
    engine: str,
    program: Program,
    directions: Mapping[str, Sequence[np.ndarray]],
    options: Mapping[str, Any],
) -> str:
    """The file's text: it calls `reproduce` of that module.

    directions: "inputs", "tangents" and "cotangents", which are arguments in this order. options: by keyword.
    """
    groups = [
        f"{name} = [\n{''.join(f'    {_literal(a)},{chr(10)}' for a in arrays)}]"
        for name, arrays in directions.items()
    ]
    given = ["program", *directions, *(f"{name}={value!r}" for name, value in options.items())]
    return "\n".join(
        [
            f'r"""{doc}"""'.replace("\\", "/"),
            "",
            f"from {module} import array, reproduce",
            "",
            f'program = r"""{program.to_text()}"""',
            *groups,
            "",
            'if __name__ == "__main__":',
            f"    reproduce({engine!r}, {', '.join(given)})",
            "",
        ]
    )


def array(dtype: str, shape: Sequence[int], values: Any) -> np.ndarray:
    """Of a Program's dtype, from numbers or from bytes."""
    if isinstance(values, bytes):
        return np.frombuffer(values, DTYPES[dtype]).reshape(shape)
    return np.asarray(values).astype(DTYPES[dtype]).reshape(shape)


def _literal(array: np.ndarray) -> str:
    """Python that gives the array to the bit."""
    name = dtype_name(array.dtype)
    if array.size > _LONGEST:
        return f"array({name!r}, {array.shape}, bytes.fromhex({array.tobytes().hex()!r}))"
    wide = array.astype(np.float64) if array.dtype.kind in "fV" else array
    values = f"[{', '.join(map(_number, wide.ravel().tolist()))}]"
    return f"array({name!r}, {array.shape}, {values})"


def _number(value: bool | int | float | complex) -> str:
    """Python for it. A complex literal would lose signs of zeros, since -1-0j is a difference."""
    if isinstance(value, complex):
        return f"complex({_number(value.real)}, {_number(value.imag)})"
    return repr(value) if math.isfinite(value) else f"float('{value}')"
