"""Programs: typed single-assignment equations over the closed set of primitives of docs/program.md.

A Program is data. It knows neither JAX nor differentiation; its methods delegate to the layers that do.
"""

from __future__ import annotations

import functools
import hashlib
import html
import importlib
import operator
import re
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType, ModuleType
from typing import Any

import numpy as np

from ..errors import ProgramTypeError
from .printer import format_body, format_program
from .schema import DERIVATIVE_RULES
from .structure import Structure
from .types import Atom, Literal, SymDim, TensorType, Value, Var, content_key

INLINE_CONSTANT = 64
"""The largest number of elements of a constant that is written into the text."""


_NO_ATTRS: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True, eq=False)
class Equation:
    """`outputs = op inputs {attrs}`. `source` is the user's line, `file.py:12 (function)`, not compared."""

    op: str
    inputs: tuple[Atom, ...]
    outputs: tuple[Var, ...]
    attrs: Mapping[str, Value] = field(default_factory=lambda: _NO_ATTRS)
    source: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "inputs", tuple(self.inputs))
        object.__setattr__(self, "outputs", tuple(self.outputs))
        if self.source:
            # Names of files may have bytes that are no text.
            source = self.source.encode("utf-8", "replace").decode()
            object.__setattr__(self, "source", " ".join(source.split()))
        if not self.attrs:
            object.__setattr__(self, "attrs", _NO_ATTRS)
        elif not isinstance(self.attrs, MappingProxyType):
            attrs = {name: _plain(value) for name, value in self.attrs.items()}
            object.__setattr__(self, "attrs", MappingProxyType(attrs))

    def _identity(self) -> tuple:
        attrs = frozenset((name, content_key(value)) for name, value in self.attrs.items())
        return self.op, self.inputs, self.outputs, attrs

    def __eq__(self, other: object) -> bool:
        return self._identity() == other._identity() if isinstance(other, Equation) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._identity())

    def __reduce__(self) -> Any:
        return Equation, (self.op, self.inputs, self.outputs, dict(self.attrs), self.source)

    @property
    def bodies(self) -> Iterator[Program]:
        """The nested Programs among the attributes."""
        for value in self.attrs.values():
            yield from _programs(value)

    @property
    def running_bodies(self) -> Iterator[Program]:
        """The nested Programs that run when the equation does: all but a user's derivative rules."""
        for name, value in self.attrs.items():
            if name not in DERIVATIVE_RULES:
                yield from _programs(value)

    def with_bodies(self, change: Callable[[Program], Program], but: Container[str] = ()) -> Equation:
        """The equation with each nested Program changed, but for attributes of those names."""

        def changed(value: Value) -> Value:
            if isinstance(value, Program):
                return change(value)
            return tuple(map(changed, value)) if isinstance(value, tuple) else value

        if not any(True for _ in self.bodies):
            return self
        attrs = {name: value if name in but else changed(value) for name, value in self.attrs.items()}
        return replace(self, attrs=attrs)

    @property
    def rule_name(self) -> str | None:
        """What stands in the place of the user's derivative rule, where that is no Program."""
        rule = self.attrs.get(_RULE_OF.get(self.op, ""))
        return rule if isinstance(rule, str) else None


_RULE_OF = {"custom_jvp": "jvp", "custom_vjp": "fwd"}


def _programs(value: Value) -> Iterator[Program]:
    if isinstance(value, Program):
        yield value
    elif isinstance(value, tuple):
        yield from (v for v in value if isinstance(v, Program))


def _plain(value: Value) -> Value:
    """An attribute value without numpy's types and without mutable lists."""
    if type(value) in (int, bool):  # most are
        return value
    match value:
        case None | bool() | SymDim() | Program():
            return value
        case str():
            return checked_string(value)
        case list() | tuple():
            return tuple(map(_plain, value))
        case int() | np.integer():
            return int(value)
        case float() | np.floating():
            return float(value)
        case np.bool_():
            return bool(value)
    raise ProgramTypeError(f"an attribute cannot hold {value!r} of type {type(value).__name__}")


def checked_string(value: str) -> str:
    """Raises ProgramTypeError where a character is none to one of the languages: 0, half a surrogate pair."""
    if "\0" in value or any("\ud800" <= c <= "\udfff" for c in value):
        raise ProgramTypeError(f"{value[:40]!r} has a character that no text of a Program can have")
    return value


@dataclass(frozen=True, eq=False, repr=False)
class Program:
    """A closed Program.

    Variables may come in with any distinct ids and are renumbered 0, 1, 2 ... in order of binding, so
    that equal Programs print alike. Programs are compared by content: neither names nor sources count,
    and large constants count by their reference.

    constants: arrays by reference, for this Program and its nested ones.
    structure: the user's arguments and result, if it was traced from a function or derived from one that was.
    rules: derivative rules that are not traced yet, by the names that equations of this Program and its
        nested ones have in their place (see `deferred`). They are of this process and no part of the text.
        A name that is not there says why there is no rule.

    Raises ProgramTypeError where a variable is used before it is bound, bound twice, or used at another
    type than it was bound at. Nested Programs have the name "".
    """

    name: str
    inputs: tuple[Var, ...]
    equations: tuple[Equation, ...]
    outputs: tuple[Atom, ...]
    constants: Mapping[str, np.ndarray] = field(default_factory=dict, repr=False)
    structure: Structure | None = field(default=None, repr=False)
    rules: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if self.name and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", self.name, re.ASCII):
            raise ProgramTypeError(f"{self.name!r} cannot be a Program's name; names are like f_1")
        inputs, equations, outputs = _renumbered(self.inputs, self.equations, self.outputs)
        object.__setattr__(self, "inputs", inputs)
        object.__setattr__(self, "equations", equations)
        object.__setattr__(self, "outputs", outputs)
        object.__setattr__(self, "constants", MappingProxyType(_used_constants(equations, self.constants)))
        object.__setattr__(self, "rules", MappingProxyType(self._used_rules()))

    @property
    def input_types(self) -> tuple[TensorType, ...]:
        return tuple(v.type for v in self.inputs)

    @property
    def output_types(self) -> tuple[TensorType, ...]:
        return tuple(atom.type for atom in self.outputs)

    @property
    def input_names(self) -> tuple[str, ...] | None:
        """For each input its argument, with the path in it: `params['w']`. None without a structure."""
        return None if (names := self._names) is None else names[0]

    @property
    def output_names(self) -> tuple[str, ...] | None:
        """For each output what it is: `result['loss']`, `x_dot`, `x_bar`. None without a structure."""
        return None if (names := self._names) is None else names[1]

    @property
    def _names(self) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
        return None if self.structure is None else _layer("frontend.structures").labels(self.structure)

    @functools.cached_property
    def digest(self) -> str:
        """sha256, in hexadecimal, of the content: neither the name nor the sources enter."""
        return hashlib.sha256(format_body(self).encode()).hexdigest()

    def all_equations(self) -> Iterator[Equation]:
        """Its equations, each before those of its nested Programs."""
        for eq in self.equations:
            yield eq
            for body in eq.bodies:
                yield from body.all_equations()

    @functools.cached_property
    def rule_names(self) -> tuple[str, ...]:
        """The names in the place of rules, nested Programs' included."""
        names = []
        for eq in self.equations:
            if eq.attrs:
                names += [] if eq.rule_name is None else [eq.rule_name]
                names += [name for body in eq.bodies for name in body.rule_names]
        return tuple(dict.fromkeys(names))

    def _used_rules(self) -> dict[str, Any]:
        names = self.rule_names if self.rules else ()
        return {name: self.rules[name] for name in names if name in self.rules}

    @functools.cached_property
    def bare(self) -> Program:
        """The content alone, without rules."""
        return replace(self, rules={}) if self.rules else self

    @functools.cached_property
    def made(self) -> dict[Any, Any]:
        """What was made of this very object, with its rules; see `deferred.remembered`."""
        return {}

    def with_structure(self, structure: Structure | None) -> Program:
        """The same Program, with what was made of it, as one of these arguments and results."""
        if structure is self.structure:
            return self
        new = object.__new__(Program)
        new.__dict__.update(vars(self), made=self.made, structure=structure)
        new.__dict__.pop("bare", None)
        return new

    def __eq__(self, other: object) -> bool:
        return self.digest == other.digest if isinstance(other, Program) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.digest)

    def __str__(self) -> str:
        return format_program(self, self._names)

    @property
    def text(self) -> str:
        """The canonical text, which is without the names of inputs and outputs."""
        return format_program(self)

    def __repr__(self) -> str:
        inputs, outputs = (", ".join(map(str, types)) for types in (self.input_types, self.output_types))
        count = self.equation_count()
        return f"<Program {self.name}({inputs}) -> ({outputs}), {count} equation{'s' * (count != 1)}>"

    def _repr_html_(self) -> str:
        return f'<pre style="white-space:pre;overflow-x:auto">{html.escape(str(self))}</pre>'

    def equation_count(self, recursive: bool = True) -> int:
        """The number of equations, those of nested Programs included if `recursive`.

        A user's derivative rules do not count: they are there for derivatives, and do not run.
        """
        nested = (
            (body.equation_count() for eq in self.equations for body in eq.running_bodies)
            if recursive
            else ()
        )
        return len(self.equations) + sum(nested)

    def to_text(self) -> str:
        """The text with the large constants, for a file: `pb.parse` reads it back. `str` is without them."""
        return _layer("ir.data").to_text(self)

    # What other layers do with a Program. They know this one, and it names them without importing them.

    def jvp(self, **options) -> Program:
        """(x..., tangents of the active x...) -> (y..., tangents of the inexact y...); made by Julia."""
        return _layer("runtime.transforms").jvp(self, **options)

    def linearize(self, **options):
        """The known part (x...) -> (y..., residuals...) and the linear part (residuals..., tangents...)."""
        return _layer("runtime.transforms").linearize(self, **options)

    def transpose(self, **options) -> Program:
        """The transpose of a Program that is linear in some of its inputs."""
        return _layer("runtime.transforms").transpose(self, **options)

    def vjp(self, **options) -> Program:
        """(x..., cotangents of the inexact y...) -> (cotangents of the active x...); made by Julia."""
        return _layer("runtime.transforms").vjp(self, **options)

    def optimize(self, **options) -> Program:
        """The same function in fewer equations; made by Julia."""
        return _layer("runtime.transforms").optimize(self, **options)

    def call(self, *args, **kwargs):
        """Run natively in Julia. Takes and returns the user's pytrees if the Program was traced."""
        return _layer("runtime.evaluation").call(self, *args, **kwargs)

    def to_jax(self):
        """A JAX-traceable callable made of lax operations alone.

        It takes and returns the user's pytrees where the Program was traced from them; else it takes one
        array for each input and returns a tuple of arrays.
        """
        return _layer("frontend.emission").callable_of(self)


def _layer(name: str) -> ModuleType:
    return importlib.import_module(f"pybridge.{name}")


def _renumbered(inputs, equations, outputs):
    """The same body with variables 0, 1, 2 ... in order of binding; checks single assignment on the way."""
    bound: dict[int, Var] = {}

    def bind(var: Var) -> Var:
        if var.id in bound:
            raise ProgramTypeError(f"%{var.id} is bound twice")
        new = var if var.id == len(bound) else Var(len(bound), var.type)
        bound[var.id] = new
        return new

    def use(atom: Atom, where: str) -> Atom:
        if isinstance(atom, Literal):
            return atom
        new = bound.get(atom.id)
        if new is atom:
            return atom
        if new is None:
            raise ProgramTypeError(f"%{atom.id} is used by {where} before it is bound")
        if new.type != atom.type:
            raise ProgramTypeError(f"%{atom.id} is bound as {new.type} but used by {where} as {atom.type}")
        return new

    new_inputs = tuple(bind(v) for v in inputs)
    new_equations = []
    for eq in equations:
        if not eq.outputs:
            raise ProgramTypeError(f"{eq.op} binds no variable")
        ins = tuple([use(a, eq.op) for a in eq.inputs])
        outs = tuple(map(bind, eq.outputs))
        same = all(map(operator.is_, ins, eq.inputs)) and all(map(operator.is_, outs, eq.outputs))
        new_equations.append(eq if same else Equation(eq.op, ins, outs, eq.attrs, eq.source))
    return new_inputs, tuple(new_equations), tuple(use(a, "return") for a in outputs)


def _used_constants(equations, given: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Of the given arrays those that are referred to, with those of the nested Programs."""
    used = {}
    for eq in equations:
        ref = eq.attrs.get("ref") if eq.op == "constant" else None
        if ref is not None and ref in given:
            used[ref] = given[ref]
        for body in eq.bodies:
            used.update(body.constants)
    return used


def constant_ref(array: np.ndarray, type_: TensorType) -> str:
    """The content address of a constant: sha256 of its type's text and its little-endian row-major bytes."""
    data = np.ascontiguousarray(array)
    if data.dtype.byteorder == ">":
        data = data.astype(data.dtype.newbyteorder("<"))
    hashed = hashlib.sha256(str(type_).encode())
    hashed.update(data.reshape(-1).view(np.uint8).data)  # without a copy
    return hashed.hexdigest()
