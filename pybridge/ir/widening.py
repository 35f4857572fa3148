"""A Program in double precision: the same equations with f64 and c128 in the place of all floats."""

from __future__ import annotations

from typing import Any

import numpy as np

from .numerals import is_inexact
from .program import Equation, Program, constant_ref
from .types import Atom, Literal, TensorType, Var

_EPSILONS = {
    "f16": 2.0**-10,
    "bf16": 2.0**-7,
    **dict.fromkeys(("f32", "c64"), 2.0**-23),
    **dict.fromkeys(("f64", "c128"), 2.0**-52),
}
_WIDE = {"f16": "f64", "bf16": "f64", "f32": "f64", "c64": "c128"}


def widened(program: Program) -> Program:
    """Integers stay what they are."""
    constants: dict[str, np.ndarray] = {}
    return _program(program, constants)


def widened_array(array: np.ndarray) -> np.ndarray:
    """The same numbers as float64 or complex128; integers and bools as they are."""
    if array.dtype.kind in "biu":
        return array
    return np.asarray(array).astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def coarsest(program: Program) -> float:
    """The unit roundoff of the coarsest dtype in the Program; that of float64 where there are no floats."""
    types = [v.type for eq in program.equations for v in eq.outputs] + list(program.input_types)
    own = [_EPSILONS[t.dtype] for t in types if t.inexact]
    return max([2.0**-52, *own, *(coarsest(body) for eq in program.equations for body in eq.bodies)])


def _program(program: Program, constants: dict[str, np.ndarray]) -> Program:
    equations = tuple(_equation(eq, program, constants) for eq in program.equations)
    inputs = tuple(map(_var, program.inputs))
    return Program(program.name, inputs, equations, tuple(map(_atom, program.outputs)), dict(constants))


def _equation(eq: Equation, program: Program, constants: dict[str, np.ndarray]) -> Equation:
    def value(name: str, given: Any) -> Any:
        if isinstance(given, Program):
            return _program(given, constants)
        if isinstance(given, tuple):
            return tuple(value("", g) for g in given)
        if name == "dtype" and given in _WIDE:
            return _WIDE[given]
        if name == "ref" and given in program.constants and is_inexact(eq.outputs[0].type.dtype):
            array = widened_array(program.constants[given])
            ref = constant_ref(array, _type(eq.outputs[0].type))
            constants[ref] = array
            return ref
        return given

    constants |= {ref: array for ref, array in program.constants.items() if array.dtype.kind in "biu"}
    attrs = {name: value(name, given) for name, given in eq.attrs.items()}
    return Equation(eq.op, tuple(map(_atom, eq.inputs)), tuple(map(_var, eq.outputs)), attrs, eq.source)


def _type(type_: TensorType) -> TensorType:
    return TensorType(_WIDE.get(type_.dtype, type_.dtype), type_.shape)


def _var(var: Var) -> Var:
    return Var(var.id, _type(var.type))


def _atom(atom: Atom) -> Atom:
    if isinstance(atom, Var):
        return _var(atom)
    return Literal(atom.value, _WIDE.get(atom.dtype, atom.dtype))
