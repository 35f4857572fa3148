"""One evaluation of a Program, or of a body of it in one trip of a loop, in which every value can be read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...frontend import emission
from ...ir.program import Equation, Program
from ...ir.types import Atom, Var

Test = Callable[[Any], Any]
"""Of an array, whether it has an element that is NaN, say."""
Outside = Callable[[int, Test], "tuple[Frame, Atom]"]
"""Of the number of a body's input: where its value comes from, which passes the test."""

CALLED = {
    "remat": "body",
    "custom_jvp": "call",
    "custom_vjp": "call",
    "linear_call": "call",
    "custom_linear_solve": "solve",
}
"""Equations that call a body once, and the attribute that has it."""


@dataclass(frozen=True, eq=False)
class Frame:
    """place: the trips of loops and branches around, outermost first. outside: None of the whole Program."""

    program: Program
    arguments: Sequence[Any]
    place: tuple[str, ...] = ()
    outside: Outside | None = field(default=None, repr=False)

    @cached_property
    def values(self) -> list[Any]:
        return emission.all_values(self.program, self.arguments)

    @cached_property
    def _makers(self) -> dict[int, int]:
        return {v.id: k for k, eq in enumerate(self.program.equations) for v in eq.outputs}

    def maker(self, var: Var) -> int | None:
        """The number of the equation that binds a variable; None of an input."""
        return self._makers.get(var.id)

    def read(self, atom: Atom) -> Any:
        return emission.read(self.values, atom)

    def operands(self, eq: Equation) -> list[Any]:
        return [self.read(a) for a in eq.inputs]

    def inside(self, eq: Equation, output: int, test: Test) -> tuple[Frame, Atom] | None:
        """Where in a body an output of an equation was computed that passes the test.

        In a loop that is the first trip after which it does. None where the equation has no body that was
        run, or the output passes the test without having been computed: in a loop of no trips.
        """
        match eq.op:
            case "cond":
                branches: Any = eq.attrs["branches"]
                index = min(max(int(self.read(eq.inputs[0])), 0), len(branches) - 1)
                return self._called(branches[index], eq.inputs[1:], output, f"branch {index}")
            case "scan":
                return _in_scan(self, eq, output, test)
            case "while":
                return _in_while(self, eq, output, test)
            case op if op in CALLED:
                body: Any = eq.attrs[CALLED[op]]
                return self._called(body, _passed(eq), output)
        return None

    def _called(
        self, body: Program, operands: Sequence[Atom], output: int, where: str | None = None
    ) -> tuple[Frame, Atom]:
        place = self.place if where is None else (*self.place, where)
        given = [self.read(a) for a in operands]
        return Frame(body, given, place, lambda i, _: (self, operands[i])), body.outputs[output]


def _passed(eq: Equation) -> Sequence[Atom]:
    """The operands that the body which an equation calls has."""
    return passed(eq, eq.inputs)


def passed(eq: Equation, operands: Sequence[Any]) -> Sequence[Any]:
    if eq.op != "custom_linear_solve":
        return operands
    consts: Any = eq.attrs["consts"]
    matvec, vecmat, solve, transposed = consts
    begin = matvec + vecmat
    return [*operands[begin : begin + solve], *operands[begin + solve + transposed :]]


def _in_scan(frame: Frame, eq: Equation, output: int, test: Test) -> tuple[Frame, Atom] | None:
    attrs: Any = eq.attrs
    consts, carry, length, body = attrs["consts"], attrs["carry"], attrs["length"], attrs["body"]
    operands = list(map(jnp.asarray, frame.operands(eq)))
    xs = operands[consts + carry :]
    run = emission.to_jax(body)

    def element(i: Any) -> list[Any]:
        k = length - 1 - i if attrs["reverse"] else i
        return [lax.dynamic_index_in_dim(x, k, keepdims=False) for x in xs]

    def go_on(state: Any) -> Any:
        i, found, _, _ = state
        return (i < length) & ~found

    @jax.jit
    def search(constants: Any, init: Any) -> Any:
        def step(state: Any) -> Any:
            i, _, _, carried = state
            results = run(*constants, *carried, *element(i))
            return i + 1, test(results[output]), carried, results[:carry]

        return lax.while_loop(go_on, step, (0, jnp.array(False), init, init))

    trips, found, carried, _ = search(operands[:consts], tuple(operands[consts : consts + carry]))
    if not found:
        return None
    done = int(trips) - 1
    k = length - 1 - done if attrs["reverse"] else done

    def outside(i: int, test: Test) -> tuple[Frame, Atom]:
        if consts <= i < consts + carry and done:
            inner = _in_scan(frame, eq, i - consts, test)
            if inner is not None:
                return inner
        return frame, eq.inputs[i]

    arguments = [*operands[:consts], *carried, *element(done)]
    return Frame(body, arguments, (*frame.place, f"trip {k}"), outside), body.outputs[output]


def _in_while(frame: Frame, eq: Equation, output: int, test: Test) -> tuple[Frame, Atom] | None:
    attrs: Any = eq.attrs
    n, m = attrs["cond_consts"], attrs["body_consts"]
    condition, run = emission.to_jax(attrs["cond"]), emission.to_jax(attrs["body"])
    operands = list(map(jnp.asarray, frame.operands(eq)))

    @jax.jit
    def search(of_cond: Any, of_body: Any, init: Any) -> Any:
        def go_on(state: Any) -> Any:
            return ~state[1] & condition(*of_cond, *state[3])[0]

        def step(state: Any) -> Any:
            i, _, _, carried = state
            results = run(*of_body, *carried)
            return i + 1, test(results[output]), carried, results

        return lax.while_loop(go_on, step, (0, jnp.array(False), init, init))

    trips, found, carried, _ = search(operands[:n], operands[n : n + m], tuple(operands[n + m :]))
    if not found:
        return None
    done = int(trips) - 1

    def outside(i: int, test: Test) -> tuple[Frame, Atom]:
        inner = _in_while(frame, eq, i - m, test) if i >= m and done else None
        return (frame, eq.inputs[n + i]) if inner is None else inner

    arguments = [*operands[n : n + m], *carried]
    place = (*frame.place, f"trip {done}")
    return Frame(attrs["body"], arguments, place, outside), attrs["body"].outputs[output]


def element_at(x: Any, index: tuple[int, ...]) -> Any:
    """Of an operand of an elementwise equation: a number stands for all elements."""
    array = np.asarray(x)
    return array[index] if array.ndim == len(index) else array[()] if not array.ndim else None
