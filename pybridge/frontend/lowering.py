"""From jaxprs to Programs.

`lower` walks a jaxpr once. What becomes of each lax primitive is said by the table in `primitives`; this
file holds what all of them share: types, constants, nested bodies, the user's lines, and refusals.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np

from ..errors import ProgramTypeError, SideEffectError, TracingError, UnsupportedPrimitive
from ..ir.deferred import Body, Names
from ..ir.numerals import COMPLEX, DTYPES, FLOATS, INTEGERS, dtype_name
from ..ir.program import INLINE_CONSTANT, Equation, Program, constant_ref
from ..ir.schema import OPERATIONS
from ..ir.types import Atom, Dim, Literal, TensorType, Var
from . import keys
from .adapter import (
    checkpoints,
    devices,
    effects,
    jaxprs,
    next_objects,
    packages,
    references,
    source,
    transposes,
)
from .dimensions import to_dim
from .primitives import DECOMPOSITIONS, LOWERINGS, RANDOM
from .primitives.custom import lower_with_own_derivative


def lower(closed_jaxpr, *, name: str = "main", hoist_constants: bool = False, package_rules: bool = True):
    """The Program of a closed jaxpr, without the user's derivative rules: those are among its `rules`.

    name: the Program's name, [A-Za-z_][A-Za-z0-9_]*.
    hoist_constants: the jaxpr's constants become the leading inputs, as they must when they are tracers,
        and the result is the pair (program, list of those constants); else they are written into the Program.
    package_rules: whether loops of packages keep the packages' reverse rules, as for `bridge`.

    Raises UnsupportedPrimitive for an operation or dtype that the Program language lacks, SideEffectError for
    a callback, print or mutable reference, TracingError for a constant that is a tracer; each names the
    user's line.
    """
    lowering = Lowering({}, Names(), package_rules=package_rules)
    jaxpr, consts = closed_jaxpr.jaxpr, list(closed_jaxpr.consts)
    hoisted = jaxpr.constvars if hoist_constants else []
    leading = [lowering.variable(lowering.type_of(v.aval)) for v in hoisted]
    inputs = [lowering.variable(lowering.type_of(v.aval)) for v in jaxpr.invars]
    outputs = lowering.run(jaxpr, leading if hoist_constants else consts, inputs)
    if None in outputs:
        raise UnsupportedPrimitive("the tangent of an integer, of dtype float0, is no result of a Program")
    program = replace(lowering.finish(name, [*leading, *inputs], outputs), rules=lowering.names.rules)
    return (program, [keys.raw(c) for c in consts]) if hoist_constants else program


Build = Callable[["Lowering", list[Var]], Sequence[Atom]]
BuildOrRun = Callable[["Lowering | _Running", list[Any]], Sequence[Any]]
"""What serves as a `Build`, and with arrays in the place of atoms as a function of these."""


class Lowering:
    """The equations of one body in the making.

    constants: the arrays behind `ref`, shared by all bodies of a Program.
    names: of the user's derivative rules, which wait; shared likewise.
    source: the user's line of the equation at hand.
    policies: what of the equations' results may be kept, for every `jax.checkpoint` around, inner ones first.
    keeps_all: it is within a checkpoint that keeps everything, which makes those inside of it idle.
    package_rules: as for `lower`.
    """

    def __init__(
        self,
        constants: dict[str, np.ndarray],
        names: Names,
        source: str = "",
        policies: tuple[checkpoints.Policy, ...] = (),
        keeps_all: bool = False,
        package_rules: bool = True,
    ):
        self.constants = constants
        self.names = names
        self.source = source
        self.policies = policies
        self.keeps_all = keeps_all
        self.package_rules = package_rules
        self.equations: list[Equation] = []
        self.count = 0
        self.broadcasts: dict[Atom, tuple[Atom, tuple[int, ...]]] = {}  # of what, and along which dims
        self.made: dict[int, tuple[Any, Atom]] = {}  # constants of this body by identity, each kept alive

    # Building

    def variable(self, type_: TensorType) -> Var:
        self.count += 1
        return Var(self.count, type_)

    def append(self, op: str, inputs: Sequence[Atom], types: Sequence[TensorType], **attrs) -> list[Var]:
        """Appends an equation and returns its results, which have the given types."""
        outputs = tuple(map(self.variable, types))
        self.equations.append(Equation(op, tuple(inputs), outputs, attrs, self.source))
        return list(outputs)

    def emit(self, op: str, inputs: Sequence[Atom], eqn, **attrs) -> list[Var]:
        """Appends `op` with the results that the jaxpr's equation has."""
        return self.append(op, inputs, [self.type_of(v.aval) for v in eqn.outvars], **attrs)

    def finish(self, name: str, inputs: Sequence[Var], outputs: Sequence[Atom]) -> Program:
        """The Program of the equations that the outputs need."""
        needed = {a for a in outputs if isinstance(a, Var)}
        live = []
        for eq in reversed(self.equations):
            if not needed.isdisjoint(eq.outputs):
                needed.update(a for a in eq.inputs if isinstance(a, Var))
                live.append(eq)
        return Program(name, tuple(inputs), tuple(reversed(live)), tuple(outputs), self.constants)

    def full(self, type_: TensorType, value) -> Atom:
        literal = Literal(value, type_.dtype)
        return self.broadcast(literal, type_.shape) if type_.shape else literal

    def zeros(self, type_: TensorType) -> Atom:
        return self.full(type_, 0)

    def broadcast(self, atom: Atom, shape: tuple[Dim, ...]) -> Atom:
        """`atom` in the given shape: of rank 0, or of the same rank with sizes of 1 that are repeated."""
        if atom.type.shape == shape:
            return atom
        dims = tuple(range(atom.type.rank))
        if atom in self.broadcasts:  # jnp reaches (n, m) from (m,) by way of (1, m); one step is enough
            atom, dims = self.broadcasts[atom]
        return self.broadcast_in_dim(atom, shape, dims)

    def broadcast_in_dim(self, atom: Atom, shape: tuple[Dim, ...], dims: tuple[int, ...]) -> Var:
        type_ = TensorType(atom.type.dtype, shape)
        (var,) = self.append("broadcast_in_dim", [atom], [type_], shape=shape, dims=dims)
        self.broadcasts[var] = atom, dims
        return var

    def convert(self, atom: Atom, dtype: str) -> Atom:
        """`atom` in that dtype: itself where it has it, and a literal as a literal."""
        if atom.type.dtype == dtype:
            return atom
        if (
            isinstance(atom, Literal)
            and dtype not in COMPLEX
            and not isinstance(atom.value, complex)
            and (dtype in FLOATS or (dtype in INTEGERS and float(atom.value).is_integer()))
        ):
            try:
                return Literal(atom.value, dtype)
            except ProgramTypeError:
                pass  # out of the range: what becomes of it is for the backend to say
        out = TensorType(dtype, atom.type.shape)
        return self.append("convert_element_type", [atom], [out], dtype=dtype)[0]

    def constant(self, value: Any) -> Atom:
        """A literal for rank 0, else an equation; one for each array in a body."""
        if id(value) not in self.made:
            self.made[id(value)] = value, self._constant(value)
        return self.made[id(value)][1]

    def _constant(self, value: Any) -> Atom:
        if isinstance(value, jaxprs.Tracer):
            raise TracingError(
                f"a derivative rule or nested function closes over a traced value ({value.aval.str_short()})"
                f"{self._at()}: pass it as an argument"
            )
        value = keys.raw(value)
        type_ = self.type_of(value if hasattr(value, "dtype") else np.asarray(value), "constant")
        array = np.asarray(value)
        if not array.shape:
            return Literal(array.item(), type_.dtype)
        if array.size <= INLINE_CONSTANT:
            return self.append("constant", [], [type_], value=_flat(array))[0]
        ref = constant_ref(array, type_)
        self.constants[ref] = array
        return self.append("constant", [], [type_], ref=ref)[0]

    # Nested jaxprs

    def body(self, jaxpr, policy: checkpoints.Policy | None = None) -> Program:
        """A nested jaxpr, closed or without constants, as a nested Program; `policy` as for `subprogram`."""
        inner = getattr(jaxpr, "jaxpr", jaxpr)
        types = [self.type_of(v.aval) for v in inner.invars]
        return self.subprogram(types, lambda lowering, args: lowering.inline(jaxpr, args), policy=policy)

    def subprogram(
        self,
        types: Sequence[TensorType],
        build: Build,
        *,
        policy: checkpoints.Policy | None = None,
    ) -> Program:
        """A nested Program with inputs of the given types; `build(lowering, inputs)` makes its outputs.

        policy: it is the body of a checkpoint, and this says what may be kept.
        """
        policies = self.policies if policy is None else (policy, *self.policies)
        settings = self.source, policies, self.keeps_all, self.package_rules
        inner = Lowering(self.constants, self.names, *settings)
        return inner._built(types, build)

    def later(self) -> Callable[[Sequence[TensorType], BuildOrRun], Body]:
        """As `subprogram`, for what is made after this Program, and has rules of its own."""
        settings = self.source, self.policies, self.keeps_all, self.package_rules

        def body(types: Sequence[TensorType], build: BuildOrRun) -> Body:
            def lowered() -> Program:
                inner = Lowering({}, Names(), *settings)
                return replace(inner._built(types, build), rules=inner.names.rules)

            return Body(lambda *arrays: build(_Running(), list(arrays)), lowered)

        return body

    def _built(self, types: Sequence[TensorType], build: Build) -> Program:
        inputs = [self.variable(t) for t in types]
        return self.finish("", inputs, build(self, inputs))

    def inline(self, jaxpr, args: Sequence[Atom]) -> list[Atom]:
        """Appends the equations of a jaxpr, closed or without constants, and returns its outputs."""
        source, jaxpr = self.source, references.discharged(jaxpr)
        outputs = self.run(getattr(jaxpr, "jaxpr", jaxpr), getattr(jaxpr, "consts", ()), args)
        self.source = source
        return outputs

    def inline_rule(self, jaxpr, args: Sequence[Atom], known: int) -> list[Atom]:
        """As `inline`, of a derivative rule, which is linear in its inputs but for the first `known`."""
        return self.inline(transposes.kept(jaxpr, [i >= known for i in range(len(args))]), args)

    def inline_keeping_all(self, jaxpr, args: Sequence[Atom]) -> list[Atom]:
        """As `inline`, of a checkpoint that keeps everything."""
        before, self.keeps_all = self.keeps_all, True
        try:
            return self.inline(jaxpr, args)
        finally:
            self.keeps_all = before

    def inline_program(self, program: Program, args: Sequence[Atom]) -> list[Atom]:
        """Appends the equations of a Program of the same symbolic dimensions, and returns its outputs."""
        program = self.names.adopted(program)
        self.constants.update(program.constants)
        values: dict[Atom, Atom] = dict(zip(program.inputs, args, strict=True))

        def read(atom: Atom) -> Atom:
            return values.get(atom, atom)

        for eq in program.equations:
            outputs = tuple(self.variable(v.type) for v in eq.outputs)
            source = eq.source or self.source
            self.equations.append(
                replace(eq, inputs=tuple(map(read, eq.inputs)), outputs=outputs, source=source)
            )
            values.update(zip(eq.outputs, outputs, strict=True))
        return [read(a) for a in program.outputs]

    def run(self, jaxpr, consts: Sequence[Any], args: Sequence[Atom]) -> list[Atom]:
        """consts: arrays, or atoms where they are inputs."""
        env: dict[Any, Atom] = dict(zip(jaxpr.invars, args, strict=True))
        # Constants are made where they are read: rules carry some that nothing reads, of dtypes unknown here.
        pending = dict(zip(jaxpr.constvars, consts, strict=True))

        def read(var) -> Any:
            """An atom; None for an integer's tangent, which nothing is computed of."""
            if jaxprs.is_float0(var.aval):
                return None
            if isinstance(var, jaxprs.Literal):
                return self.literal(var)
            if var not in env:
                value = pending[var]
                env[var] = value if isinstance(value, Var | Literal) else self.constant(value)
            return env[var]

        for eqn in map(next_objects.counterpart, jaxpr.eqns):
            if eqn.outvars and all(jaxprs.is_float0(v.aval) for v in eqn.outvars):
                continue  # integers have no tangents: what is computed of them stands for nothing
            self.source = source.line_of(eqn) or self.source
            policies, operands = self.policies, [read(v) for v in eqn.invars]
            self.policies = policies if checkpoints.is_opened(eqn) else ()
            outputs = self.equation(eqn, operands)
            self.policies = policies
            levels = checkpoints.saveable_levels(policies, eqn)
            if levels:
                outputs = [self.append("saveable", [a], [a.type], levels=levels)[0] for a in outputs]
            env.update(zip(eqn.outvars, outputs, strict=True))
        return [read(v) for v in jaxpr.outvars]

    def literal(self, var) -> Atom:
        value = np.asarray(var.val)
        type_ = self.type_of(var.aval)
        return Literal(value.item(), type_.dtype) if not value.shape else self.constant(var.val)

    def equation(self, eqn, inputs: list[Atom]) -> Sequence[Atom]:
        name = str(eqn.primitive)
        if name in DECOMPOSITIONS:
            if name not in RANDOM and keys.moves_keys(eqn):
                return self.inline(keys.moved_data(eqn), inputs)
            return DECOMPOSITIONS[name](self, eqn, inputs)
        spec = LOWERINGS.get(name)
        if spec is None:
            if packages.has_definition(eqn):
                return self.inline(packages.definition(eqn), inputs)
            if packages.has_own_derivative(eqn) and not self.package_rules:
                return lower_with_own_derivative(self, eqn, inputs)
            raise self.refusal(eqn)
        if keys.moves_keys(eqn):
            return self.inline(keys.moved_data(eqn), inputs)
        if spec.lower is not None:
            return spec.lower(self, eqn, inputs)
        types = [self.type_of(v.aval, name) for v in eqn.outvars]
        try:
            attrs = spec.read(eqn)
        except UnsupportedPrimitive as e:
            raise self.unsupported(eqn, str(e)) from None
        if OPERATIONS[spec.op].elementwise:
            if eqn.params.get("out_dtype") is not None:
                inputs = [self.convert(a, types[0].dtype) for a in inputs]
            inputs = [a if isinstance(a, Literal) else self.broadcast(a, types[0].shape) for a in inputs]
        return self.append(spec.op, inputs, types, **attrs)

    # Types and refusals

    def type_of(self, aval: Any, primitive: str = "") -> TensorType:
        """Weak types are dropped: everything in a Program has a dtype of its own."""
        if references.is_reference(aval):
            raise SideEffectError(
                f"a mutable reference{self._at()}: a Program is pure; pass and return arrays"
            )
        aval = keys.raw_aval(aval)
        dtype = dtype_name(getattr(aval, "dtype", None)) if hasattr(aval, "dtype") else None
        if dtype is None:
            made_by = f" made by {primitive}" if primitive else ""
            raise UnsupportedPrimitive(
                f"a value of type {getattr(aval, 'dtype', aval)}{made_by}{self._at()}: Programs hold "
                f"{', '.join(DTYPES)}. See docs/primitives.md",
                primitive=primitive,
                source=self.source,
            )
        return TensorType(dtype, tuple(map(to_dim, aval.shape)))

    @staticmethod
    def dim(size: Any) -> Dim:
        return to_dim(size)

    def _at(self) -> str:
        return f" at {self.source}" if self.source else ""

    def refusal(self, eqn) -> SideEffectError | UnsupportedPrimitive:
        """The error for a primitive that no spec and no decomposition knows."""
        name = str(eqn.primitive)
        if name in devices.COLLECTIVES:
            return UnsupportedPrimitive(
                f"{name}{self._at()} is between devices, and a Program is for one. pybridge.bridge takes the "
                "function as it is: JAX does this operation, and Programs what is before and behind it",
                primitive=name,
                source=self.source,
            )
        if effects.is_bound_by_jax(eqn):
            return SideEffectError(
                f"{name}{self._at()} calls Python, and a Program is pure: pybridge.bridge takes the function "
                "as it is, and JAX does this operation between Programs"
            )
        if effects.has_effect(eqn):
            return SideEffectError(
                f"{name}{self._at()} has side effects, and a Program is pure: keep it outside the function "
                "that is bridged; jax.debug.callback and jax.pure_callback can stay inside"
            )
        return self.unsupported(eqn, name)

    def unsupported(self, eqn, what: str) -> UnsupportedPrimitive:
        return UnsupportedPrimitive(
            f"{what}{self._at()} is not in the Program language. docs/primitives.md lists what is; "
            "pybridge.bridge takes the function as it is: JAX does this operation, with its own derivative, "
            "and Programs what is before and behind it",
            primitive=str(eqn.primitive),
            source=self.source,
        )


class _Running:
    """What `Lowering` does, done with arrays at once."""

    def inline(self, jaxpr, args: Sequence[Any]) -> list[Any]:
        return jaxprs.jaxpr_as_fun(jaxpr)(*args)

    def inline_rule(self, jaxpr, args: Sequence[Any], known: int) -> list[Any]:
        return self.inline(jaxpr, args)

    def zeros(self, type_: TensorType) -> Any:
        return jnp.zeros(type_.shape, DTYPES[type_.dtype])


def _flat(array: np.ndarray) -> tuple:
    """The elements in row-major order as Python numbers; complex ones as real and imaginary parts in turn."""
    name = dtype_name(array.dtype)
    if name in COMPLEX:
        return tuple(part for z in array.ravel().tolist() for part in (z.real, z.imag))
    return tuple((array.astype(np.float32) if name == "bf16" else array).ravel().tolist())
