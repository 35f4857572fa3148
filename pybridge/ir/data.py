"""Large constants in text: `data "<hash>" f32[3,4] "<base64>"`, a line for each, behind the Programs.

What crosses to Julia is without them: there buffers are passed separately from the text.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Mapping

import numpy as np

from ..errors import ProgramTypeError
from .deferred import expanded
from .numerals import DTYPES, dtype_name
from .program import Program, constant_ref
from .types import TensorType


def to_text(program: Program) -> str:
    """The text of the Program with all that it consists of, its derivative rules and large constants."""
    whole = expanded(program)
    return whole.text + "".join(map(_line, whole.constants.items()))


def _line(constant: tuple[str, np.ndarray]) -> str:
    ref, array = constant
    type_ = TensorType(dtype_name(array.dtype) or "", array.shape)
    data = base64.b64encode(np.ascontiguousarray(array, DTYPES[type_.dtype]).tobytes()).decode()
    return f'data "{ref}" {type_} "{data}"\n'


def read_data(ref: str, type_: TensorType, text: str, known: Mapping[str, np.ndarray]) -> np.ndarray:
    """The array in a line. Raises ProgramTypeError where it is not the one that the hash belongs to."""
    if ref in known:
        raise ProgramTypeError(f"the data of {ref} are given twice")
    sizes = [dim for dim in type_.shape if isinstance(dim, int)]
    if len(sizes) < type_.rank:
        raise ProgramTypeError(f"data cannot be a {type_}")
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ProgramTypeError("data are no base64") from None
    dtype = DTYPES[type_.dtype]
    if len(data) != math.prod(sizes) * dtype.itemsize or (type_.dtype == "bool" and max(data, default=0) > 1):
        raise ProgramTypeError(f"{len(data)} bytes are no {type_}")
    array = np.frombuffer(data, dtype).reshape(sizes)
    if constant_ref(array, type_) != ref:
        raise ProgramTypeError(f"the data are not those of {ref}: their hash is another")
    return array
