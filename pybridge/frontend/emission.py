"""From Programs back to JAX: every equation becomes operations of `jax.lax`.

The result is ordinary JAX code, so all of JAX's transformations and exports apply to it. The values have
exactly the types that the Program declares; weak types play no part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import jax
import numpy as np
from jax import lax

from ..errors import ArgumentError, ProgramTypeError, PyBridgeError, UnsupportedPrimitive
from ..ir.dead_code import is_symbolic
from ..ir.deferred import is_of_a_rule, rule_of
from ..ir.numerals import COMPLEX, DTYPES, dtype_name
from ..ir.program import Equation, Program
from ..ir.schema import OPERATIONS
from ..ir.types import Atom, Literal, SymDim, TensorType, Var
from . import keys
from .adapter import devices, next_objects, source
from .dimensions import Dimensions
from .primitives import SPECS
from .structures import with_structure

Arrays = tuple[Any, ...]
RunRule = Callable[[Program, Sequence[Any]], Sequence[Any]]


def to_jax(
    program: Program,
    after: Callable[[Equation, Any], Any] | None = None,
    *,
    portable: bool = False,
    sizes: Iterable[tuple[str, Any]] = (),
    at_sources: bool = False,
    run_rule: RunRule | None = None,
) -> Callable[..., Arrays]:
    """A function of one array for each input of the Program; it returns a tuple, one array for each output.

    after: applied to every equation and result of it, those of nested Programs included.
    portable: without calls of a platform's library, where `frontend.portable` can do without.
    sizes: of symbolic dimensions, where they do not follow from the shapes of the arguments.
    at_sources: JAX is told that operations come from the lines of the equations, and not from the caller's.
    run_rule: takes a Program that a user's derivative rule gives, and its arguments, in place of operations.

    Raises UnsupportedPrimitive here, before anything runs, for an operation that is not in the table. The
    function raises ArgumentError for arguments that do not fit, ProgramTypeError for a Program whose
    declared types are not those of its operations.
    """
    _check_known(program)

    def call(*args) -> Arrays:
        arrays = _arguments(program, args)
        dims = Dimensions(program.input_types, [x.shape for x in arrays], sizes)
        axes = devices.varying_together(arrays)
        context = _Context(
            dims,
            program.rules,
            axes,
            after=after,
            portable=portable,
            at_sources=at_sources,
            run_rule=run_rule,
        )
        with next_objects.avoided():
            return _evaluate(program, arrays, context)

    call.__name__ = call.__qualname__ = program.name or "program"
    return call


def result_types(op: str, inputs: Sequence[Atom], attrs: Mapping[str, Any]) -> list[TensorType]:
    """The types of an equation's results, as JAX has them.

    Raises ProgramTypeError, or what JAX raises, where there is no such equation.
    """
    eq = Equation(op, tuple(inputs), (), attrs)
    variables = [a for a in eq.inputs if not isinstance(a, Literal)]
    shape = next((a.type.shape for a in variables if a.type.shape), ())
    like = Equation(op, eq.inputs, (Var(0, TensorType("f32", shape)),), attrs)  # the shape is what is read

    def results(*arrays):
        given = iter(arrays)
        operands = [DTYPES[a.dtype].type(a.value) if isinstance(a, Literal) else next(given) for a in inputs]
        context = _Context(Dimensions((), ()), {}, frozenset())
        return _equation(Program("", (), (), ()), like, operands, context)

    avals = [jax.ShapeDtypeStruct(a.type.shape, DTYPES[a.type.dtype]) for a in variables]
    found = jax.eval_shape(results, *avals)
    return [TensorType(dtype_name(y.dtype) or str(y.dtype), tuple(y.shape)) for y in found]


def callable_of(program: Program) -> Callable[..., Any]:
    """A function of the user's pytrees where the Program was traced from one; else `to_jax`."""
    function = to_jax(program)
    structure = program.structure
    return function if structure is None else with_structure(structure, function, program.name)


def _check_known(program: Program) -> None:
    for eq in program.all_equations():
        if eq.op not in SPECS:
            at = f" at {eq.source}" if eq.source else ""
            raise UnsupportedPrimitive(
                f"{eq.op}{at} is not a primitive of Programs; docs/program.md lists them",
                primitive=eq.op,
                source=eq.source,
            )


# Arguments


def _arguments(program: Program, args: Sequence[Any]) -> list[Any]:
    if len(args) != len(program.inputs):
        raise ArgumentError(
            f"{program.name or 'the Program'} takes {len(program.inputs)} arrays, got {len(args)}"
        )
    return [_argument(i, x, v.type) for i, (x, v) in enumerate(zip(args, program.inputs, strict=True))]


def _argument(i: int, x: Any, type_: TensorType) -> Any:
    """`x` as a strongly typed array. Python's numbers take the declared dtype; arrays must have it."""
    x, dtype = keys.raw(x), DTYPES[type_.dtype]
    if jax.dtypes.canonicalize_dtype(dtype) != dtype:
        raise ArgumentError(
            f"input {i} is {type_}: switch on 64-bit types, jax.config.update('jax_enable_x64', True)"
        )
    if isinstance(x, bool | int | float | complex):
        return np.asarray(x, dtype)
    try:
        found = jax.typeof(x)
    except TypeError:
        raise ArgumentError(f"argument {i} is no array but a {type(x).__name__}") from None
    weak = getattr(found, "weak_type", False)
    if found.dtype != dtype and not weak:
        raise ArgumentError(
            f"argument {i} is {dtype_name(found.dtype) or found.dtype}, the Program has {type_}"
        )
    return lax.convert_element_type(x, dtype) if weak or not hasattr(x, "ndim") else x


# Evaluation


def all_values(program: Program, args: Sequence[Any]) -> list[Any]:
    """The value of every variable of a Program, at the place of its id."""
    context = _Context(Dimensions(program.input_types, [x.shape for x in args]))
    with next_objects.avoided():
        return _values(program, args, context)


def apply(program: Program, eq: Equation, operands: Sequence[Any]) -> Sequence[Any]:
    """The results of one equation of a Program without symbolic dimensions."""
    return _equation(program, eq, list(operands), _Context(Dimensions()))


@dataclass(frozen=True)
class _Context:
    """dims: the sizes of symbolic dimensions.

    rules: the Program's, by name.
    axes: in `shard_map`, over which mesh axes values vary. The Program's arguments do, so must a constant:
    it may be what a loop begins with, or the result of one branch of two.
    depth: how many checkpoints are around.
    after, portable, at_sources, run_rule: of `to_jax`.
    """

    dims: Dimensions
    rules: Mapping[str, Any] = field(default_factory=dict, hash=False)
    axes: frozenset = frozenset()
    depth: int = 0
    after: Callable[[Equation, Any], Any] | None = None
    portable: bool = False
    at_sources: bool = False
    run_rule: RunRule | None = None

    def spread(self, x: Any) -> Any:
        return devices.varying_over(x, self.axes)


def read(values: Sequence[Any], atom: Atom) -> Any:
    """What an atom stands for, where variables have these values."""
    return DTYPES[atom.dtype].type(atom.value) if isinstance(atom, Literal) else values[atom.id]


def _evaluate(program: Program, args: Sequence[Any], context: _Context) -> Arrays:
    values = _values(program, args, context)
    results = ((atom, read(values, atom)) for atom in program.outputs)
    return tuple(np.asarray(x) if isinstance(atom, Literal) else x for atom, x in results)


def _values(program: Program, args: Sequence[Any], context: _Context) -> list[Any]:
    values: list[Any] = list(args)
    for eq in program.equations:
        operands = [read(values, a) for a in eq.inputs]
        if any(True for _ in eq.bodies):
            given = zip(eq.inputs, operands, strict=True)
            operands = [context.spread(x) if isinstance(a, Literal) else x for a, x in given]
        results = _at_source(program, eq, operands, context)
        _check_results(eq, results, context.dims)
        if context.after is not None:
            results = [context.after(eq, y) for y in results]
        values.extend(map(context.spread, results))
    return values


def _at_source(program: Program, eq: Equation, operands: list[Any], context: _Context) -> Sequence[Any]:
    if not context.at_sources:
        return _equation(program, eq, operands, context)
    return source.run_at(eq.source, lambda: _equation(program, eq, operands, context))


def _equation(program: Program, eq: Equation, operands: list[Any], context: _Context) -> Sequence[Any]:
    spec = SPECS[eq.op]
    if eq.op == "constant":
        return [_constant(program, eq)]
    inside = replace(context, depth=context.depth + 1) if eq.op == "remat" else context
    attrs = {name: _attribute(value, inside) for name, value in eq.attrs.items()}
    rule = rule_of(eq, context.rules)
    if rule is not None:
        attrs = {name: rule if value == eq.rule_name else value for name, value in attrs.items()}
    if spec.counts_checkpoints:
        attrs["depth"] = context.depth
    try:
        emit = spec.portable if context.portable and spec.portable else spec.emit
        results = emit(*operands, **attrs)
    except FloatingPointError as e:  # where jax_debug_nans is on
        raise FloatingPointError(f"{e} at {eq.source}" if eq.source else str(e)) from e
    except (TypeError, ValueError) as e:
        if _is_elsewhere(e):
            raise
        at = f" ({eq.source})" if eq.source else ""
        raise ProgramTypeError(f"{eq.op}{at}: {e}") from e
    results = list(results) if isinstance(results, tuple | list) else [results]
    if OPERATIONS[eq.op].elementwise and results[0].ndim == 0 and eq.outputs[0].type.shape:
        shape = context.dims.shape(eq.outputs[0].type)
        results = [lax.broadcast(y, shape) for y in results]  # all operands were literals
    return results


def _is_elsewhere(error: Exception) -> bool:
    """Whether it is about something else than the Program's types."""
    return isinstance(error, PyBridgeError | jax.errors.UnexpectedTracerError) or is_of_a_rule(error)


@dataclass(frozen=True)
class _Body:
    """A nested Program as a function of arrays; `program` tells emitters its types."""

    program: Program
    context: _Context

    @property
    def rules(self) -> Mapping[str, Any]:
        """By the names that the Program has in their place."""
        return self.context.rules

    def by_rule(self, program: Program, args: Sequence[Any], whole: bool) -> Arrays:
        """The results of another Program, with rules of its own, that a rule of the user's gives here.

        whole: it may run as a whole.
        """
        run = self.context.run_rule
        if not whole or run is None or is_symbolic(program):
            return _Body(program, replace(self.context, rules=program.rules))(*args)
        return tuple(map(self.context.spread, run(program, args)))

    def shape(self, type_: TensorType) -> tuple[int, ...]:
        return self.context.dims.shape(type_)

    def __call__(self, *args) -> Arrays:
        results = _evaluate(self.program, args, self.context)
        return tuple(map(self.context.spread, results))


def _attribute(value: Any, context: _Context) -> Any:
    if isinstance(value, Program):
        return _Body(value, context)
    if isinstance(value, SymDim):
        return context.dims[value]
    if isinstance(value, tuple):
        return tuple(_attribute(v, context) for v in value)
    return value


def _constant(program: Program, eq: Equation) -> np.ndarray:
    type_ = eq.outputs[0].type
    ref = eq.attrs.get("ref")
    if ref is not None:
        if ref not in program.constants:
            raise ProgramTypeError(
                f"the data of the constant {ref} are missing: parse(text, constants) takes them"
            )
        return program.constants[ref]
    value = eq.attrs["value"]
    if type_.dtype in COMPLEX:
        value = tuple(complex(re, im) for re, im in zip(value[::2], value[1::2], strict=True))
    shape = cast("tuple[int, ...]", type_.shape)  # of a symbolic size numpy says that it is no integer
    try:
        return np.asarray(value, DTYPES[type_.dtype]).reshape(shape)
    except (ValueError, TypeError) as e:
        raise ProgramTypeError(f"constant: {e}") from None


def _check_results(eq: Equation, results: Sequence[Any], dims: Dimensions) -> None:
    """Declared types are promises to everything downstream, Julia's kernels above all."""
    if len(results) != len(eq.outputs):
        raise ProgramTypeError(f"{eq.op} gives {len(results)} results where {len(eq.outputs)} are bound")
    for var, value in zip(eq.outputs, results, strict=True):
        if value.dtype != DTYPES[var.type.dtype] or tuple(value.shape) != dims.shape(var.type):
            found = f"{dtype_name(value.dtype) or value.dtype}[{','.join(map(str, value.shape))}]"
            at = f" ({eq.source})" if eq.source else ""
            hint = "; jax_enable_x64 is off" if var.type.dtype in ("f64", "i64", "u64", "c128") else ""
            raise ProgramTypeError(f"{eq.op}{at} gives {found} where the Program has {var.type}{hint}")
