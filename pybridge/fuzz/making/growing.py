"""A Program in the making: what is in scope, and how equations are added to it."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from ...frontend.emission import result_types
from ...frontend.tracing import trace
from ...ir.numerals import COMPLEX, DTYPES, FLOATS, INTEGERS, is_inexact
from ...ir.program import Equation, Program
from ...ir.types import Atom, Literal, TensorType, Var

LARGEST = 600
"""No value has more elements."""


def sizes_of(type_: TensorType) -> tuple[int, ...]:
    """Here none is symbolic."""
    return tuple(n for n in type_.shape if isinstance(n, int))


class Unfit(Exception):
    """There is no such equation here: nothing in scope fits, or JAX refuses it."""


class Growth:
    """Equations and variables so far. depth: of nested bodies that may still be made.

    make: adds one random equation or some to a Growth.
    """

    def __init__(self, rng: random.Random, depth: int, make: Callable[[Growth], None]):
        self.rng, self.depth, self.make = rng, depth, make
        self.inputs: list[Var] = []
        self.equations: list[Equation] = []
        self.constants: dict[str, np.ndarray] = {}
        self.scope: list[Var] = []
        self.hidden: set[Var] = set()

    def _fresh(self, type_: TensorType) -> Var:
        self.scope.append(Var(len(self.scope), type_))
        return self.scope[-1]

    def input(self, type_: TensorType) -> Var:
        self.inputs.append(self._fresh(type_))
        return self.inputs[-1]

    def program(self, outputs: Sequence[Atom], name: str = "") -> Program:
        return Program(name, tuple(self.inputs), tuple(self.equations), tuple(outputs), self.constants)

    # Choosing

    def pick(self, fits: Callable[[TensorType], bool] = lambda t: True) -> Var:
        """A variable of such a type, the late ones more often: what was made should be used."""
        found = [v for v in self.scope if fits(v.type) and v not in self.hidden]
        if not found:
            raise Unfit
        return found[max(self.rng.randrange(len(found)) for _ in range(2))]

    def real(self, fits: Callable[[TensorType], bool] = lambda t: True) -> Var:
        return self.pick(lambda t: t.dtype in FLOATS and fits(t))

    def inexact(self, fits: Callable[[TensorType], bool] = lambda t: True) -> Var:
        return self.pick(lambda t: t.inexact and fits(t))

    def integer(self) -> Var:
        return self.pick(lambda t: t.dtype in INTEGERS)

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def literal(self, dtype: str) -> Literal:
        """A number that is neither large nor always harmless."""
        if dtype == "bool":
            return Literal(self.chance(0.5), dtype)
        if dtype in INTEGERS:
            return Literal(self.rng.choice([0, 1, 2, 3, 5, *(() if dtype[0] == "u" else (-1, -4))]), dtype)
        number = self.rng.choice([0.0, 1.0, -1.0, 0.5, 2.0, round(self.rng.uniform(-2, 2), 2)])
        if dtype in COMPLEX:
            return Literal(complex(number, round(self.rng.uniform(-1, 1), 2)), dtype)
        return Literal(number, dtype)

    # Adding

    def add(self, op: str, *inputs: Atom, **attrs: Any) -> tuple[Var, ...]:
        """The results of a new equation. Raises Unfit where JAX refuses it or a result is too large."""
        try:
            types = result_types(op, inputs, attrs)
        except Unfit:
            raise
        except Exception as refusal:
            raise Unfit(f"{op}: {refusal}") from None
        return self._append(op, inputs, types, attrs)

    def _append(
        self, op: str, inputs: Sequence[Atom], types: Sequence[TensorType], attrs: Any
    ) -> tuple[Var, ...]:
        if any(t.dtype not in DTYPES or np.prod(sizes_of(t)) > LARGEST or t.rank > 5 for t in types):
            raise Unfit(f"{op}: results {', '.join(map(str, types))}")
        outputs = tuple(map(self._fresh, types))
        self.equations.append(Equation(op, tuple(inputs), outputs, attrs))
        return outputs

    def one(self, op: str, *inputs: Atom, **attrs: Any) -> Var:
        return self.add(op, *inputs, **attrs)[0]

    def constant(self, type_: TensorType, **attrs: Any) -> Var:
        return self._append("constant", (), [type_], attrs)[0]

    def inline(self, f: Callable, *inputs: Var) -> list[Var]:
        """The equations of a JAX function of these; those of its results that are variables."""
        try:
            traced = trace(f)(*(jax.ShapeDtypeStruct(v.type.shape, DTYPES[v.type.dtype]) for v in inputs))
        except Exception as refusal:
            raise Unfit(str(refusal)) from None
        named: dict[Var, Atom] = dict(zip(traced.inputs, inputs, strict=True))

        def use(atom: Atom) -> Atom:
            return named[atom] if isinstance(atom, Var) else atom

        before = len(self.scope)
        for eq in traced.equations:
            outputs = self._append(eq.op, list(map(use, eq.inputs)), [v.type for v in eq.outputs], eq.attrs)
            named |= dict(zip(eq.outputs, outputs, strict=True))
        self.constants |= traced.constants
        results = [v for v in map(use, traced.outputs) if isinstance(v, Var)]
        self._forget(before, results)
        return results

    def _forget(self, start: int, kept: Sequence[Var]) -> None:
        """What a traced function has inside may depend on signs or orders that nobody promises."""
        self.hidden |= set(self.scope[start:]) - set(kept)

    # Making operands fit

    def within(self, x: Var, low: float, high: float) -> Var:
        """`x` brought between the bounds, but now and then as it is."""
        if self.chance(0.1) or x.type.dtype in COMPLEX:
            return x
        dtype = x.type.dtype
        share = self.one("logistic", x)
        scaled = self.one("mul", share, Literal(high - low, dtype))
        return self.one("add", scaled, Literal(low, dtype))

    def tame(self, x: Var) -> Var:
        """Of numbers that may be large, such as products of many."""
        return self.one("tanh", x) if x.type.dtype in FLOATS and self.chance(0.6) else x

    def conform(self, x: Atom, type_: TensorType) -> Atom:
        """`x` brought to a type: converted, and its sum broadcast where the shape is another."""
        if x.type.dtype != type_.dtype:
            if isinstance(x, Literal):
                return self.conform(self.zeros(x.type), type_)
            if is_inexact(x.type.dtype) and not is_inexact(type_.dtype) and type_.dtype != "bool":
                x = self._integers(x, type_.dtype)
            elif type_.dtype == "bool":
                x = self._condition(x)
            else:
                x = self.one("convert_element_type", x, dtype=type_.dtype)
        if x.type.shape == type_.shape:
            return x
        if x.type.shape:
            op = "reduce_sum" if type_.dtype != "bool" else "reduce_or"
            x = self.one(op, x, axes=tuple(range(x.type.rank)))
        return self.one("broadcast_in_dim", x, shape=type_.shape, dims=()) if type_.shape else x

    def zeros(self, type_: TensorType) -> Var:
        zero = Literal(0 if type_.dtype not in COMPLEX else 0j, type_.dtype)
        return self.one("broadcast_in_dim", zero, shape=type_.shape, dims=())

    def _integers(self, x: Atom, dtype: str) -> Var:
        """Small ones, since conversions of large or infinite numbers are undefined."""
        if x.type.dtype in COMPLEX:
            x = self.one("real", x)
        small = self.one("mul", self.one("logistic", x), Literal(5.0, x.type.dtype))
        return self.one("convert_element_type", self.one("floor", small), dtype=dtype)

    def _condition(self, x: Atom) -> Var:
        if x.type.dtype in COMPLEX:
            x = self.one("real", x)
        return self.one("gt", x, Literal(0.25 if is_inexact(x.type.dtype) else 1, x.type.dtype))

    def like(self, type_: TensorType) -> Atom:
        """Something of that type: what is in scope, a literal, or what is brought to it."""
        same = [v for v in self.scope if v.type == type_ and v not in self.hidden]
        if same and self.chance(0.8):
            return self.rng.choice(same)
        if self.chance(0.3):
            return self.literal(type_.dtype)
        return self.conform(self.pick(), type_)

    def array(self, type_: TensorType) -> Atom:
        """The same, but never a literal that stands for an array."""
        found = self.like(type_)
        return self.conform(found, type_) if isinstance(found, Var) else self.filled(found, type_)

    def filled(self, number: Atom, type_: TensorType) -> Atom:
        return self.one("broadcast_in_dim", number, shape=type_.shape, dims=()) if type_.shape else number

    # Bodies

    def body(
        self, inputs: Sequence[TensorType], outputs: Sequence[TensorType] | None = None, steps: int = 3
    ) -> Program:
        """A nested Program of these types, or of outputs of any."""
        if self.depth <= 0:
            raise Unfit
        inner = Growth(self.rng, self.depth - 1, self.make)
        for type_ in inputs:
            inner.input(type_)
        inner.grow(self.rng.randint(1, steps))
        if outputs is None:
            return inner.program([inner.pick() for _ in range(self.rng.randint(1, 2))])
        return inner.program([inner.array(t) for t in outputs])

    def grow(self, steps: int) -> None:
        """So many random equations, or some more that make operands fit."""
        made = 0
        for _ in range(20 * steps):
            if made == steps:
                return
            before = len(self.scope), len(self.equations)
            try:
                self.make(self)
                made += 1
            except Unfit:
                del self.scope[before[0] :], self.equations[before[1] :]
                self.hidden &= set(self.scope)
