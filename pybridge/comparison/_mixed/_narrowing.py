"""A Program with some of its values in 32 bits: the same equations, and conversions where precisions meet.

Arguments and results keep their types. An equation whose results are float32 has float32 operands. One
without results of 64 bits, a comparison say, has what its operands come as, in 64 bits where they differ.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ...ir.numerals import DTYPES, normalise
from ...ir.program import Equation, Program, constant_ref
from ...ir.types import Atom, Literal, TensorType, Var
from ._weights import NARROW
from ._wiring import Path, Wire, wires

Narrowed = Callable[[Path, Var], bool]
"""Whether a value of a body is to be float32."""

WIDE_ONLY = frozenset({"bitcast_convert_type", "nextafter", "reduce_precision"})
"""What these do in 64 bits they cannot do in 32."""


def narrowed(program: Program, is_narrow: Narrowed) -> Program:
    """The Program in which those values are float32, or complex64."""
    body = _body(program, (), is_narrow, program.output_types)
    return replace(body, name=program.name, structure=program.structure)


def _body(program: Program, path: Path, is_narrow: Narrowed, results: Sequence[TensorType | None]) -> Program:
    """results: the types that its outputs are to have; None, those that they come as in 64 bits."""
    new = _Rewritten(program, path, is_narrow)
    inputs = [new.bind(v) for v in program.inputs]
    for k, eq in enumerate(program.equations):
        new.equation(k, eq)
    outputs = [new.cast(a, a.type if t is None else t) for a, t in zip(program.outputs, results, strict=True)]
    return Program(
        "", tuple(inputs), tuple(new.equations), tuple(outputs), new.constants, None, program.rules
    )


def recast(program: Program, inputs: Sequence[TensorType], outputs: Sequence[TensorType]) -> Program:
    """A derivative rule, which goes on in its own precision, for operands and results of these types."""
    if tuple(inputs) == program.input_types and tuple(outputs) == program.output_types:
        return program
    numbers = itertools.count(len(program.inputs) + sum(len(eq.outputs) for eq in program.equations))
    before, after, given = [], [], []
    found: list[Atom] = []
    for old, type_ in zip(program.inputs, inputs, strict=True):
        new = old if type_ == old.type else Var(next(numbers), type_)
        given.append(new)
        if new is not old:
            before.append(_conversion(new, old))
    for atom, type_ in zip(program.outputs, outputs, strict=True):
        if type_ == atom.type:
            found.append(atom)
        elif isinstance(atom, Literal):
            found.append(Literal(atom.value, type_.dtype))
        else:
            new = Var(next(numbers), type_)
            found.append(new)
            after.append(_conversion(atom, new))
    equations = (*before, *program.equations, *after)
    return Program("", tuple(given), equations, tuple(found), program.constants, None, program.rules)


def _conversion(source: Var, target: Var, at: str = "") -> Equation:
    return Equation("convert_element_type", (source,), (target,), {"dtype": target.type.dtype}, at)


def narrow_type(type_: TensorType) -> TensorType:
    return TensorType(NARROW.get(type_.dtype, type_.dtype), type_.shape)


@dataclass(eq=False)
class _Rewritten:
    """known: by the variable of the old body that of the new one."""

    program: Program
    path: Path
    is_narrow: Narrowed
    known: dict[int, Var] = field(default_factory=dict)
    equations: list[Equation] = field(default_factory=list)
    constants: dict[str, np.ndarray] = field(default_factory=dict)
    _source: str = ""
    _numbers: Any = field(default_factory=itertools.count)
    _casts: dict[tuple[int, str], Var] = field(default_factory=dict)

    # Values

    def variable(self, type_: TensorType) -> Var:
        return Var(next(self._numbers), type_)

    def type_of(self, var: Var) -> TensorType:
        """That of a variable of the old body in the new one."""
        wide = var.type.dtype not in NARROW or not self.is_narrow(self.path, var)
        return var.type if wide else narrow_type(var.type)

    def bind(self, var: Var) -> Var:
        self.known[var.id] = self.variable(self.type_of(var))
        return self.known[var.id]

    def cast(self, atom: Atom, type_: TensorType) -> Atom:
        """An atom of the old body, of this dtype in the new one."""
        if isinstance(atom, Literal):
            return Literal(atom.value, type_.dtype)
        return self.converted(self.known[atom.id], type_)

    def converted(self, var: Var, type_: TensorType) -> Var:
        """Once for each variable and type."""
        if var.type.dtype == type_.dtype:
            return var
        key = (var.id, type_.dtype)
        if key not in self._casts:
            new = self._casts[key] = self.variable(TensorType(type_.dtype, var.type.shape))
            self.equations.append(_conversion(var, new, self._source))
        return self._casts[key]

    # Equations

    def equation(self, number: int, eq: Equation) -> None:
        self._source = eq.source
        inner = wires(eq)
        operands, attrs = self._nested(eq, number, inner) if inner else self._leaf(eq)
        results = tuple(map(self.bind, eq.outputs))
        self.equations.append(Equation(eq.op, tuple(operands), results, attrs, eq.source))
        for body in self.equations[-1].bodies:
            self.constants |= body.constants

    def _leaf(self, eq: Equation) -> tuple[Sequence[Atom], dict[str, Any]]:
        wide = [v for v in eq.outputs if v.type.dtype in NARROW]
        narrow = self.is_narrow(self.path, wide[0]) if wide else self._all_narrow(eq)
        operands = [self.cast(a, narrow_type(a.type) if narrow else a.type) for a in eq.inputs]
        attrs: dict[str, Any] = dict(eq.attrs)
        if narrow and wide and attrs.get("dtype") in NARROW:
            attrs["dtype"] = NARROW[attrs["dtype"]]
        if eq.op == "constant":
            attrs |= self._constant(eq, bool(narrow))
        return operands, attrs

    def _all_narrow(self, eq: Equation) -> bool:
        """Of an equation without results of 64 bits, whether its operands are all there in 32."""
        of_64 = [a for a in eq.inputs if a.type.dtype in NARROW]
        variables = [self.known[a.id] for a in of_64 if not isinstance(a, Literal)]
        numbers = [a for a in of_64 if isinstance(a, Literal)]
        return (
            eq.op not in WIDE_ONLY
            and bool(variables)
            and all(v.type.dtype not in NARROW for v in variables)
            and all(_same(normalise(a.value, NARROW[a.dtype]), a.value) for a in numbers)
        )

    def _constant(self, eq: Equation, narrow: bool) -> dict[str, Any]:
        """The attributes that change."""
        attrs: Any = eq.attrs
        type_ = narrow_type(eq.outputs[0].type) if narrow else eq.outputs[0].type
        if attrs.get("ref") is None:
            part = {"f64": "f32", "c128": "f32"}.get(eq.outputs[0].type.dtype)
            return {"value": _rounded(attrs["value"], part)} if narrow and part else {}
        with np.errstate(over="ignore"):
            array = self.program.constants[attrs["ref"]].astype(DTYPES[type_.dtype])
        ref = constant_ref(array, type_)
        self.constants[ref] = array
        return {"ref": ref}

    # Equations with bodies

    def _operand_types(self, eq: Equation, number: int, inner: Sequence[Wire]) -> list[TensorType]:
        """Those of the inputs of the bodies that take them."""
        types = [a.type for a in eq.inputs]
        for w in inner:
            below = w.path(self.path, number)
            for position, var in zip(w.operands, w.body.inputs, strict=True):
                if var.type.dtype in NARROW and self.is_narrow(below, var):
                    types[position] = narrow_type(var.type)
        return types

    def _nested(
        self, eq: Equation, number: int, inner: Sequence[Wire]
    ) -> tuple[Sequence[Atom], dict[str, Any]]:
        attrs: dict[str, Any] = dict(eq.attrs)
        results = [self.type_of(v) for v in eq.outputs]
        for w in inner:
            types = [None if j is None else results[j] for j in w.results]
            body = _body(w.body, w.path(self.path, number), self.is_narrow, types)
            attrs[w.name] = _placed(attrs[w.name], w.index, body)
        operands = self._operand_types(eq, number, inner)
        attrs |= _rules(eq, operands, results)
        return [self.cast(a, t) for a, t in zip(eq.inputs, operands, strict=True)], attrs


def _rounded(value: Any, dtype: str) -> Any:
    return tuple(_rounded(x, dtype) for x in value) if isinstance(value, tuple) else normalise(value, dtype)


def _placed(value: Any, index: int, body: Program) -> Any:
    if isinstance(value, Program):
        return body
    return tuple(body if i == index else old for i, old in enumerate(value))


def _same(x: Any, y: Any) -> bool:
    return x == y or (x != x and y != y)


def _rules(eq: Equation, operands: Sequence[TensorType], results: Sequence[TensorType]) -> dict[str, Program]:
    """The derivative rules of an equation for operands and results of these types."""
    attrs: Any = eq.attrs
    tangents = [t for t in operands if t.inexact]
    dots = [t for t in results if t.inexact]
    match eq.op:
        case "custom_jvp" if isinstance(attrs["jvp"], Program):
            return {"jvp": recast(attrs["jvp"], [*operands, *tangents], [*results, *dots])}
        case "custom_vjp" if isinstance(attrs["fwd"], Program):
            fwd, bwd = attrs["fwd"], attrs["bwd"]
            residuals = fwd.output_types[len(results) :]
            return {
                "fwd": recast(fwd, operands, [*results, *residuals]),
                "bwd": recast(bwd, [*residuals, *dots], tangents),
            }
        case "linear_call":
            n = attrs["residuals"]
            return {"transpose": recast(attrs["transpose"], [*operands[:n], *results], operands[n:])}
        case "custom_linear_solve":
            return _solve_rules(attrs, operands)
    return {}


def _solve_rules(attrs: Any, operands: Sequence[TensorType]) -> dict[str, Program]:
    names = ("matvec", "vecmat", "solve", "transpose_solve")
    starts = list(itertools.accumulate(attrs["consts"], initial=0))
    right = operands[starts[-1] :]
    found = {}
    for name, start, count in zip(names, starts, attrs["consts"], strict=False):
        rule = attrs[name]
        if name != "solve" and isinstance(rule, Program):
            outputs = [*right, *rule.output_types[len(right) :]]
            found[name] = recast(rule, [*operands[start : start + count], *right], outputs)
    return found
