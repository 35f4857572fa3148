"""Programs run by Julia on numpy arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import ArgumentError
from ..frontend.structures import with_structure
from ..ir.numerals import DTYPES
from ..ir.program import Program
from .requests import addresses, ask, references


def call(program: Program, *args, **kwargs):
    """The results, as the user's pytrees if the Program has a structure."""
    structure = program.structure
    if structure is None:
        return tuple(evaluate(program, *args, **kwargs))
    return with_structure(structure, lambda *flat: evaluate(program, *flat), program.name)(*args, **kwargs)


def evaluate(program: Program, *arrays) -> list[np.ndarray]:
    """Runs the Program in Julia on numpy arrays; raises ArgumentError where they do not fit its inputs."""
    inputs = [_argument(i, x, type_) for i, (x, type_) in enumerate(_paired(program, arrays))]
    outputs = [np.empty(_static(t.shape), DTYPES[t.dtype]) for t in program.output_types]
    refs = {ref: np.ascontiguousarray(data) for ref, data in program.constants.items()}
    places = addresses(inputs), addresses(outputs), references(refs)
    ask("evaluate", program, *places, memory=(inputs, outputs, refs))
    return outputs


def _paired(program: Program, arrays: Sequence):
    if len(arrays) != len(program.inputs):
        raise ArgumentError(f"{program.name} takes {len(program.inputs)} arrays, got {len(arrays)}")
    return zip(arrays, program.input_types, strict=True)


def _argument(i: int, x, type_) -> np.ndarray:
    """A contiguous array of the input's exact type; Python numbers take its dtype."""
    dtype = DTYPES[type_.dtype]
    array = np.asarray(x, dtype) if isinstance(x, (bool, int, float, complex)) else np.asarray(x)
    if array.dtype != dtype or array.shape != _static(type_.shape):
        raise ArgumentError(f"argument {i} has type {array.dtype}{list(array.shape)} where {type_} is needed")
    return np.ascontiguousarray(array).reshape(array.shape)


def _static(shape) -> tuple[int, ...]:
    if not all(isinstance(dim, int) for dim in shape):
        raise ArgumentError(
            "a Program with symbolic dimensions cannot run in Julia; trace it with concrete shapes"
        )
    return tuple(shape)
