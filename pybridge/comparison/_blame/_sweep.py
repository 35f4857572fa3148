"""One sweep back over a Program: the adjoint of every equation, and what its rounding adds to the error.

It is reverse mode, equation by equation, of the algorithm that runs, not of its derivative: rules of one's
own and `stop_gradient` hide no rounding error. Bodies of loops are compiled, one loop back for one loop
forward; outside of them equations run one by one, each kind compiled once, so that long Programs take little
time.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...frontend import emission
from ...ir.numerals import DTYPES
from ...ir.program import Equation, Program
from ...ir.schema import OPERATIONS
from ...ir.types import Literal, TensorType, content_key
from ._frames import CALLED, passed
from ._own_errors import is_exact, own_error

Array = Any
Charges = Any
"""By equation: None, [own error, error inherited, result] (with an axis in front for each loop), or Charges
of bodies."""

_TRIPS = 128  # of a while loop inside another loop, at most: what is stored of them
IDENTITIES = frozenset({"stop_gradient", "saveable", "copy"})


def unit(dtype: str) -> float:
    return float(jnp.finfo(DTYPES[dtype]).eps) / 2


@dataclass(eq=False)
class Sweep:
    """uncovered: operations without a derivative. numbers_too: literals have adjoints like other operands."""

    uncovered: set[str] = field(default_factory=set)
    numbers_too: bool = False
    _steps: dict[Any, Callable] = field(default_factory=dict)

    def back(
        self,
        program: Program,
        values: Sequence[Array],
        cotangents: Sequence[Array | None],
        exact: Sequence[bool],
        eager: bool,
    ) -> tuple[list[Array | None], Charges]:
        """The cotangents of the inputs, and what each equation adds. exact: which inputs have no error."""
        known = _exact_variables(program, exact)
        cts: dict[int, Array] = {}
        for atom, ct in zip(program.outputs, cotangents, strict=True):
            _add(cts, atom, ct)
        charges: list[Charges] = [None] * len(program.equations)
        for k in range(len(program.equations) - 1, -1, -1):
            eq = program.equations[k]
            of_results = [cts.pop(v.id, None) for v in eq.outputs]
            if self.skips(eq, of_results):
                continue
            operands = [emission.read(values, a) for a in eq.inputs]
            results = [values[v.id] for v in eq.outputs]
            flags = [isinstance(a, Literal) or known[a.id] for a in eq.inputs]
            of_operands, charges[k] = self._equation(program, eq, operands, results, of_results, flags, eager)
            for atom, ct in zip(eq.inputs, of_operands, strict=True):
                _add(cts, atom, ct)
        return [cts.get(v.id) for v in program.inputs], charges

    def skips(self, eq: Equation, cts: Sequence[Array | None]) -> bool:
        """Whether an equation has nothing to add."""
        return all(ct is None for ct in cts) or not any(a.type.inexact for a in eq.inputs)

    def charge(
        self,
        program: Program,
        eq: Equation,
        exact: Sequence[bool],
        operands: Sequence[Array],
        results: Sequence[Array],
        cts: Sequence[Array | None],
        of_operands: Sequence[Array | None],
    ) -> Charges:
        """What one equation adds, of its results' and its operands' cotangents.

        [own error, error inherited from rounded operands of a sum, the same of the result], summed.
        """
        own = own_error(program, eq, operands, results)
        dtype = next(v.type.dtype for v in (*eq.outputs, *eq.inputs) if v.type.inexact)
        weights = [*cts, *of_operands[: len(own.operands)]]
        sizes = [*own.outputs, *own.operands]
        error = sum((_weighted(u, s) for u, s in zip(weights, sizes, strict=True)), jnp.zeros(()))
        inherited = kept = jnp.zeros(())
        if own.terms:
            kept = _weighted(cts[0], abs(results[0]))
            terms = own.terms if len(own.terms) > 1 else [own.terms[0]] * (not all(exact))
            flags = exact if len(own.terms) > 1 else [False]
            inherited = sum(
                (_weighted(cts[0], t) for t, known in zip(terms, flags, strict=False) if not known), inherited
            )
        return unit(dtype) * jnp.stack([error, inherited, kept])

    def _equation(
        self,
        program: Program,
        eq: Equation,
        operands: Sequence[Array],
        results: Sequence[Array],
        cts: Sequence[Array | None],
        exact: Sequence[bool],
        eager: bool,
    ) -> tuple[Sequence[Array | None], Charges]:
        attrs: Any = eq.attrs
        if eq.op in IDENTITIES:
            return cts, None
        if eq.op in CALLED:
            body = attrs[CALLED[eq.op]]
            given = passed(eq, operands)
            found, charges = self._body(body, given, cts, passed(eq, exact), eager)
            return _unpassed(eq, found), [charges]
        if eq.op == "cond":
            return self._cond(eq, operands, cts, exact, eager)
        if eq.op == "scan":
            consts, carry = attrs["consts"], attrs["carry"]
            loop = _Loop(attrs["body"], consts, carry, attrs["length"], attrs["reverse"])
            run = lambda xs, us: self._scan(loop, xs, us, exact)  # noqa: E731
            if eager:
                run = self._compiled(eq, exact, loop.length, run)
            return run(list(operands), _instantiated(eq, cts))
        if eq.op == "while":
            return self._while(eq, operands, _instantiated(eq, cts), exact, eager)
        return self._leaf(program, eq, operands, results, _instantiated(eq, cts), exact, eager)

    def _body(
        self,
        body: Program,
        operands: Sequence[Array],
        cts: Sequence[Array | None],
        exact: Sequence[bool],
        eager: bool,
    ) -> tuple[list[Array | None], Charges]:
        return self.back(body, emission.all_values(body, operands), cts, exact, eager)

    # One equation

    def _leaf(
        self,
        program: Program,
        eq: Equation,
        operands: Sequence[Array],
        results: Sequence[Array],
        cts: Sequence[Array | None],
        exact: Sequence[bool],
        eager: bool,
    ) -> tuple[Sequence[Array | None], Charges]:
        if OPERATIONS[eq.op].elementwise:  # numbers as operands, so that other numbers need no compilation
            shape = eq.outputs[0].type.shape
            operands = [
                np.full(shape, x) if isinstance(a, Literal) else x
                for a, x in zip(eq.inputs, operands, strict=True)
            ]
        try:
            if not eager:
                return self._step(program, eq, exact, operands, results, cts)
            key = _signature(eq, exact)
            if key not in self._steps:
                self._steps[key] = jax.jit(lambda xs, ys, us: self._step(program, eq, exact, xs, ys, us))
            return self._steps[key](list(operands), list(results), list(cts))
        except (NotImplementedError, TypeError, ValueError):
            self.uncovered.add(eq.op)
            return [None] * len(operands), None

    def _step(
        self,
        program: Program,
        eq: Equation,
        exact: Sequence[bool],
        operands: Sequence[Array],
        results: Sequence[Array],
        cts: Sequence[Array | None],
    ) -> tuple[list[Array | None], Array]:
        inexact = [v.type.inexact for v in eq.outputs]
        places = [
            i
            for i, a in enumerate(eq.inputs)
            if a.type.inexact and (self.numbers_too or not isinstance(a, Literal))
        ]

        def function(*active: Array) -> list[Array]:
            given = list(operands)
            for i, x in zip(places, active, strict=True):
                given[i] = x
            return list(itertools.compress(emission.apply(program, eq, given), inexact))

        us = [ct for ct in cts if ct is not None]
        _, pull = jax.vjp(function, *(operands[i] for i in places))
        found: list[Array | None] = [None] * len(operands)
        for i, ct in zip(places, pull(us), strict=True):
            found[i] = ct
        return found, self.charge(program, eq, exact, operands, results, cts, found)

    # Equations with bodies

    def _compiled(self, eq: Equation, exact: Sequence[bool], trips: int, run: Callable) -> Callable:
        """Once for all sweeps; the key holds the equation, so that no other takes its identity."""
        key = (_Same(eq), tuple(exact), trips)
        if key not in self._steps:
            self._steps[key] = jax.jit(run)
        return self._steps[key]

    def _cond(
        self,
        eq: Equation,
        operands: Sequence[Array],
        cts: Sequence[Array | None],
        exact: Sequence[bool],
        eager: bool,
    ) -> tuple[Sequence[Array | None], Charges]:
        branches: Any = eq.attrs["branches"]
        if eager:
            taken = min(max(int(operands[0]), 0), len(branches) - 1)
            found, charges = self._body(branches[taken], operands[1:], cts, exact[1:], eager)
            return [None, *found], [charges if k == taken else None for k in range(len(branches))]
        us = _instantiated(eq, cts)

        def run(body: Program) -> Callable:
            def branch(xs: Any) -> Any:
                found, charges = self._body(body, xs, us, exact[1:], False)
                return _full(body.input_types, found), charges

            return branch

        rest = list(operands[1:])
        runs = [run(body) for body in branches]
        shapes = [jax.eval_shape(r, rest)[1] for r in runs]

        def among_all(k: int) -> Callable:
            def branch(xs: Any) -> Any:
                found, charges = runs[k](xs)
                return found, [charges if i == k else _like(s) for i, s in enumerate(shapes)]

            return branch

        index = jnp.clip(operands[0], 0, len(branches) - 1)
        found, charges = lax.switch(index, [among_all(k) for k in range(len(branches))], rest)
        return [None, *found], charges

    def _scan(
        self,
        loop: _Loop,
        operands: Sequence[Array],
        cts: Sequence[Array | None],
        exact: Sequence[bool],
        runs: Array | None = None,
    ) -> tuple[Sequence[Array | None], Charges]:
        """runs: of a loop whose last trips do not take place, which do."""
        constants, init, xs = loop.split(operands)
        types, run, flags = loop.body.input_types, emission.to_jax(loop.body), loop.exact(exact)

        def forward(carried: Any, given: Any) -> Any:
            def step(carried: Any) -> Any:
                return run(*constants, *carried, *given[0])[: loop.carry]

            return _if(given[1], step, lambda c: c, carried), carried

        def backward(state: Any, given: Any) -> Any:
            carried, x, of_ys, runs = given

            def step(state: Any) -> Any:
                of_constants, of_carry = state
                given = [*constants, *carried, *x]
                found, charges = self._body(loop.body, given, [*of_carry, *of_ys], flags, False)
                a, b, c = loop.split(_full(types, found))
                summed = [None if s is None else s + t for s, t in zip(of_constants, a, strict=True)]
                return (summed, b), (c, charges)

            if runs is None:
                return step(state)
            _, left = jax.eval_shape(step, state)
            return lax.cond(runs, step, lambda s: (s, _like(left)), state)

        options = {"length": loop.length}
        _, before = lax.scan(forward, tuple(init), (tuple(xs), runs), reverse=loop.reverse, **options)
        start = (_zeros(types[: loop.consts]), list(cts[: loop.carry]))
        given = (before, tuple(xs), list(cts[loop.carry :]), runs)
        (a, b), (c, charges) = lax.scan(backward, start, given, reverse=not loop.reverse, **options)
        return [*a, *b, *c], [charges]

    def _while(
        self,
        eq: Equation,
        operands: Sequence[Array],
        cts: Sequence[Array | None],
        exact: Sequence[bool],
        eager: bool,
    ) -> tuple[Sequence[Array | None], Charges]:
        """The trips that ran, as a scan over those of them that there were."""
        attrs: Any = eq.attrs
        n, m, body = attrs["cond_consts"], attrs["body_consts"], attrs["body"]
        condition, run = emission.to_jax(attrs["cond"]), emission.to_jax(body)
        of_cond, of_body, init = operands[:n], operands[n : n + m], tuple(operands[n + m :])

        def count(init: Any) -> Array:
            return lax.while_loop(
                lambda s: condition(*of_cond, *s[1])[0], lambda s: (s[0] + 1, run(*of_body, *s[1])), (0, init)
            )[0]

        trips = jax.jit(count)(init)
        if eager:
            loop = _Loop(body, m, len(init), int(trips), False)
            run_back = lambda xs, us: self._scan(loop, xs, us, exact[n:])  # noqa: E731
            found, charges = self._compiled(eq, exact, loop.length, run_back)([*of_body, *init], cts)
        else:
            loop = _Loop(body, m, len(init), _TRIPS, False)
            known = jnp.where(trips <= _TRIPS, 1, jnp.nan)
            us = [None if u is None else u * known.astype(u.dtype) for u in cts]
            runs = jnp.arange(_TRIPS) < trips
            found, charges = self._scan(loop, [*of_body, *init], us, exact[n:], runs)
        return [*[None] * n, *found], charges


@dataclass(frozen=True)
class _Same:
    """Compared by identity: to hash an equation would be to print its bodies."""

    eq: Equation

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.eq is self.eq

    def __hash__(self) -> int:
        return id(self.eq)


@dataclass(frozen=True)
class _Loop:
    body: Program
    consts: int
    carry: int
    length: int
    reverse: bool

    def split(self, xs: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        """What is of the constants, of the carries, and of what goes by trip."""
        fixed = self.consts + self.carry
        return list(xs[: self.consts]), list(xs[self.consts : fixed]), list(xs[fixed:])

    def exact(self, flags: Sequence[bool]) -> list[bool]:
        """A carry is what the trip before has computed."""
        constants, _, xs = self.split(flags)
        return [*constants, *[False] * self.carry, *xs]


def _if(runs: Array | None, step: Callable, otherwise: Callable, given: Any) -> Any:
    return step(given) if runs is None else lax.cond(runs, step, otherwise, given)


def _like(shapes: Any) -> Any:
    return jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)


def _zero(type_: TensorType) -> Array:
    return jnp.zeros(type_.shape, DTYPES[type_.dtype]) if type_.inexact else None


def _zeros(types: Sequence[TensorType]) -> list[Array]:
    return list(map(_zero, types))


def _full(types: Sequence[TensorType], cts: Sequence[Array | None]) -> list[Array | None]:
    return [_zero(t) if ct is None else ct for t, ct in zip(types, cts, strict=True)]


def _instantiated(eq: Equation, cts: Sequence[Array | None]) -> list[Array | None]:
    return _full([v.type for v in eq.outputs], cts)


def _add(cts: dict[int, Array], atom: Any, ct: Array | None) -> None:
    if ct is not None and not isinstance(atom, Literal) and atom.type.inexact:
        cts[atom.id] = cts[atom.id] + ct if atom.id in cts else ct


def _unpassed(eq: Equation, found: Sequence[Array | None]) -> Sequence[Array | None]:
    """The cotangents of all operands, of those of the operands that the body has."""
    places = passed(eq, range(len(eq.inputs)))
    by_place = dict(zip(places, found, strict=True))
    return [by_place.get(i) for i in range(len(eq.inputs))]


def _exact_variables(program: Program, exact: Sequence[bool]) -> dict[int, bool]:
    """Which variables are computed from exact ones without rounding."""
    known = {v.id: flag for v, flag in zip(program.inputs, exact, strict=True)}
    for eq in program.equations:
        flag = is_exact(eq) and all(isinstance(a, Literal) or known[a.id] for a in eq.inputs)
        known |= {v.id: flag or not v.type.inexact for v in eq.outputs}
    return known


def _weighted(ct: Array | None, size: Array | None) -> Array:
    """0 where the size is: the infinite derivative of sqrt at 0 magnifies nothing."""
    if ct is None or size is None:
        return jnp.zeros(())
    products = jnp.where(size == 0, 0, abs(ct) * jnp.where(size == 0, 1, size))
    return products.sum().astype(jnp.zeros(()).dtype)


def _signature(eq: Equation, exact: Sequence[bool]) -> Any:
    attrs = tuple((name, content_key(value)) for name, value in eq.attrs.items())
    elementwise = OPERATIONS[eq.op].elementwise
    inputs = tuple(
        (str(a.type), None if elementwise else repr(a.value)) if isinstance(a, Literal) else str(a.type)
        for a in eq.inputs
    )
    return eq.op, attrs, inputs, tuple(str(v.type) for v in eq.outputs), tuple(exact), is_exact(eq)
