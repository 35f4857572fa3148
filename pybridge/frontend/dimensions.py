"""Symbolic dimensions: between jax.export's expressions and the text that Programs carry."""

from __future__ import annotations

import ast
import functools
import operator
import re
from collections.abc import Callable, Iterable
from typing import Any

import jax
import jax.export

from ..errors import ArgumentError, ProgramTypeError
from ..ir.numerals import DTYPES
from ..ir.types import Dim, SymDim, TensorType
from .adapter import internals

Sizes = tuple[tuple[str, Any], ...]
"""Of symbolic dimensions, by their names."""

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def _power(base: Any, exponent: Any) -> Any:
    if not 0 <= exponent <= 16:  # no size is such a power, and a hostile text could ask for a huge one
        raise ProgramTypeError(f"a symbolic dimension has the exponent {exponent}")
    return base**exponent


_OPERATORS: dict[type[ast.operator | ast.unaryop], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Pow: _power,
    ast.USub: operator.neg,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "max": internals.max_dim,
    "min": internals.min_dim,
}


def is_symbolic(size: Any) -> bool:
    return internals.is_dim(size) and not internals.is_constant_dim(size)


def to_dim(size: Any) -> Dim:
    """An int as it is; one of jax.export's symbolic sizes as a `SymDim`."""
    return SymDim(str(size)) if is_symbolic(size) else int(size)


class Dimensions:
    """The sizes that symbolic dimensions have in one call, known from the shapes of its arguments.

    Sizes are ints, or jax.export's symbolic sizes while one traces with those. `known` are those of variables
    that no argument may have.
    Raises ArgumentError where a shape contradicts its type or leaves a variable open.
    """

    def __init__(
        self,
        types: Iterable[TensorType] = (),
        shapes: Iterable[tuple] = (),
        known: Iterable[tuple[str, Any]] = (),
    ):
        self.sizes: dict[str, Any] = dict(known)
        pairs = [pair for type_, shape in zip(types, shapes, strict=True) for pair in _paired(type_, shape)]
        compound = []
        for dim, size in pairs:
            if not isinstance(dim, SymDim):
                self._check(dim, dim, size)
            elif _VARIABLE.fullmatch(dim.text):
                self._check(dim, self.sizes.setdefault(dim.text, size), size)
            else:
                compound.append((dim, size))
        for dim, size in compound:
            self._solve(dim, size)
        for dim, size in compound:
            self._check(dim, self[dim], size)

    def _solve(self, dim: SymDim, size: Any) -> None:
        """Finds the one unknown of an expression such as 2*b + 1, if it has just one and is linear in it."""
        unknown = {n.id for n in ast.walk(_parsed(dim.text)) if isinstance(n, ast.Name)}
        unknown -= self.sizes.keys() | _FUNCTIONS.keys()
        if len(unknown) != 1:
            return
        (name,) = unknown
        at = [_evaluate(_parsed(dim.text).body, {**self.sizes, name: n}) for n in (0, 1, 2)]
        slope = at[1] - at[0]
        if slope != 0 and at[2] - at[1] == slope and (size - at[0]) % slope == 0:
            self.sizes[name] = (size - at[0]) // slope

    @staticmethod
    def _check(dim: Dim, expected: Any, size: Any) -> None:
        if expected != size:
            raise ArgumentError(f"an argument has size {size} where the Program has {dim} = {expected}")

    @property
    def variables(self) -> tuple[tuple[str, Any], ...]:
        """The sizes of variables, to be `known` to the Programs that are made of this one."""
        return tuple(sorted((name, size) for name, size in self.sizes.items() if _VARIABLE.fullmatch(name)))

    def __getitem__(self, dim: Dim) -> Any:
        if not isinstance(dim, SymDim):
            return dim
        if dim.text not in self.sizes:
            self.sizes[dim.text] = _evaluate(_parsed(dim.text).body, self.sizes)
        return self.sizes[dim.text]

    def shape(self, type_: TensorType) -> tuple:
        return tuple(self[dim] for dim in type_.shape)


def export_arguments(types: Iterable[TensorType]) -> tuple:
    """Shapes and dtypes of these types for `jax.export`, symbolic dimensions in one scope."""
    scope = jax.export.SymbolicScope()

    def shape(type_):
        text = ",".join(d.text if isinstance(d, SymDim) else str(d) for d in type_.shape)
        return jax.export.symbolic_shape(text, scope=scope) if text else ()

    return tuple(jax.ShapeDtypeStruct(shape(t), DTYPES[t.dtype]) for t in types)


def _paired(type_: TensorType, shape: tuple):
    if len(shape) != type_.rank:
        raise ArgumentError(f"an argument has shape {shape} where the Program has {type_}")
    return zip(type_.shape, shape, strict=True)


@functools.lru_cache(maxsize=1024)
def _parsed(text: str) -> ast.Expression:
    """The expression's tree (jax writes powers with ^). Parsing evaluates nothing."""
    if len(text) > 1000:
        raise ProgramTypeError(f"the symbolic dimension {text[:40]}... is too long")
    try:
        return ast.parse(text.strip().replace("^", "**"), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ProgramTypeError(f"{text!r} is not a symbolic dimension") from None


def _evaluate(node: ast.AST, sizes: dict[str, Any]) -> Any:
    match node:
        case ast.Constant(value=int() as value):
            return value
        case ast.Name(id=name):
            if name not in sizes:
                raise ArgumentError(f"the size {name} does not follow from the shapes of the arguments")
            return sizes[name]
        case ast.UnaryOp(op=op, operand=x) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_evaluate(x, sizes))
        case ast.BinOp(op=op, left=x, right=y) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_evaluate(x, sizes), _evaluate(y, sizes))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _FUNCTIONS:
            return _FUNCTIONS[name](*(_evaluate(arg, sizes) for arg in args))
    raise ProgramTypeError(f"{ast.unparse(node)} is not a symbolic dimension")
