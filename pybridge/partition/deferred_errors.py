"""Errors that packages raise while a function runs, raised at its end: before, they would cut Programs.

`equinox.error_if(x, pred, ...)` is `x`, and a call of Python where `pred` holds. In its place is the number
of the first error that is due, 0 while there is none, which loops carry. No `while` goes on once there is
one, since with the values of an error it might never end. What must not happen after an error, as a print
or an operation of a package's, has the error raised before it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..frontend.adapter import (
    checkpoints,
    effects,
    equation_parameters,
    jaxprs,
    next_objects,
    packages,
)
from ..frontend.adapter.packages import PackageError
from .needs_jax import is_of_others


def with_errors_last(jaxpr: Any) -> tuple[Any, Check | None]:
    """The jaxpr, which has no constants, with two more results by which `Check` raises its errors.

    None, and the jaxpr itself, if it has none.
    """
    if not any(map(packages.holds_errors, jaxpr.eqns)):
        return jaxpr, None
    deferring = _Deferring()

    def run(*args: Any) -> list[Any]:
        results, due = deferring._body(jaxpr, args, None)
        return [*results, *due]

    closed = jaxprs.traced(run, [v.aval for v in jaxpr.invars])
    return jaxprs.without_constants(closed), Check(tuple(deferring.errors))


class _Due(NamedTuple):
    """error: the number of the first error that is due, or 0. message: which of its messages."""

    error: Any
    message: Any


def _nothing() -> _Due:
    return _Due(jnp.int32(0), jnp.int32(0))


def _first(one: _Due, other: _Due) -> _Due:
    return _Due(*(jnp.where(one.error != 0, x, y) for x, y in zip(one, other, strict=True)))


class _Result(NamedTuple):
    """due: None where nothing can be."""

    values: list[Any]
    due: _Due | None


@dataclass(frozen=True)
class _Deferring:
    """errors: by their numbers, which begin with 1."""

    errors: list[PackageError] = field(default_factory=list)

    def run(self, jaxpr: Any, args: Sequence[Any], due: _Due | None) -> _Result:
        constants = [c for _, c in jaxprs.constants(jaxpr)]
        jaxpr = jaxprs.without_dead_code(jaxprs.opened(jaxpr))
        conditions = _conditions(jaxpr)

        def apply(eqn: Any, operands: list[Any]) -> list[Any]:
            nonlocal due
            if packages.has_definition(eqn) and conditions.issuperset(eqn.outvars):
                # That of one item: what is due is asked of the batch where it is raised.
                return jaxprs.jaxpr_as_fun(packages.definition(eqn))(*operands)
            results, due = self._equation(next_objects.counterpart(eqn), operands, due)
            return results

        return _Result(jaxprs.interpreted(jaxpr, [*constants, *args], apply), due)

    def _equation(self, eqn: Any, operands: list[Any], due: _Due | None) -> _Result:
        error, holds_errors, kind = packages.error(eqn), packages.holds_errors(eqn), _kind(eqn)
        if error is not None:
            return _Result(error.values(operands), self._noted(error, operands, due))
        if due is None and not holds_errors:
            return _Result(jaxprs.bind(eqn, operands), None)
        if kind == "called":
            return self._called(eqn, operands, due)
        if not _can_wait(eqn):
            left = None if any(map(jaxprs.is_array, operands)) else due
            return _Result(jaxprs.bind(eqn, self.raised(due, operands)), left)
        if kind is not None and (holds_errors or _may_never_end(eqn)):
            return _ENTERED[kind](self, eqn, operands, due or _nothing())
        return _Result(jaxprs.bind(eqn, operands), due)

    def _noted(self, error: PackageError, operands: Sequence[Any], due: _Due | None) -> _Due:
        """After this error."""
        number = jnp.where(error.is_due(operands), jnp.int32(self._number(error)), 0)
        found = _Due(number, jnp.asarray(error.message(operands)[0], jnp.int32))
        return _first(due or _nothing(), found)

    def _number(self, error: PackageError) -> int:
        """A rule's function is traced again when its derivative is, and has the same errors."""
        known = [k for k, e in enumerate(self.errors, 1) if e.raise_ is error.raise_]
        if not known:
            self.errors.append(error)
        return known[0] if known else len(self.errors)

    def raised(self, due: _Due | None, values: Sequence[Any]) -> list[Any]:
        """The values, unless an error is due."""
        return list(values) if due is None else Check(tuple(self.errors)).passed(due, values)

    # Equations with errors, or loops, in them

    def _called(self, eqn: Any, operands: list[Any], due: _Due | None) -> _Result:
        return self.run(packages.checkpointed_loop(eqn) or equation_parameters.called(eqn), operands, due)

    def _solver(self, eqn: Any, operands: list[Any], due: _Due) -> _Result:
        """By its definition, with its errors, under the package's rule."""
        definition = packages.definition(eqn)

        @jax.custom_jvp
        def solve(*xs: Any) -> tuple[list[Any], _Due]:
            return self._body(definition, xs, None)

        def jvp(primals: Any, tangents: Any) -> Any:
            values, found = solve(*primals)
            _, dots = jaxprs.jvp(lambda *xs: jaxprs.bind(eqn, xs), primals, tangents)
            nothing = map(jax.custom_derivatives.SymbolicZero.from_primal_value, found)
            return (values, found), (dots, _Due(*nothing))

        solve.defjvp(jvp, symbolic_zeros=True)
        values, found = solve(*operands)
        return _Result(values, _first(due, found))

    def _while(self, eqn: Any, operands: list[Any], due: _Due) -> _Result:
        loop = equation_parameters.while_loop(eqn)
        of_condition, of_body, start = _split(operands, loop.cond_consts, loop.body_consts)

        def goes_on(state):
            carried, due = state
            (wanted,) = jaxprs.jaxpr_as_fun(loop.cond)(*of_condition, *carried)
            return jnp.logical_and(wanted, due.error == 0)

        def trip(state):
            carried, due = state
            return self._body(loop.body, [*of_body, *carried], due)

        return _Result(*jax.lax.while_loop(goes_on, trip, (start, due)))

    def _scan(self, eqn: Any, operands: list[Any], due: _Due) -> _Result:
        loop = equation_parameters.scan(eqn)
        constants, start, elements = _split(operands, loop.consts, loop.carry)

        def trip(state, items):
            carried, due = state
            results, due = self._body(loop.body, [*constants, *carried, *items], due)
            return (results[: loop.carry], due), results[loop.carry :]

        (carried, due), stacks = jax.lax.scan(
            trip, (start, due), elements, loop.length, reverse=loop.reverse, unroll=loop.unroll
        )
        return _Result([*carried, *stacks], due)

    def _cond(self, eqn: Any, operands: list[Any], due: _Due) -> _Result:
        index, *xs = operands
        branches = [functools.partial(self._body, b) for b in equation_parameters.cond(eqn).branches]
        return _Result(*jax.lax.switch(index, branches, xs, due))

    def _checkpoint(self, eqn: Any, operands: list[Any], due: _Due) -> _Result:
        remat = equation_parameters.remat(eqn)
        body = functools.partial(self._body, remat.body)
        again = jax.checkpoint(body, policy=remat.policy, prevent_cse=remat.barrier)
        return _Result(*again(operands, due))

    def _body(self, jaxpr: Any, args: Sequence[Any], due: _Due | None) -> tuple[list[Any], _Due]:
        """As `run`, where something can be due in any case."""
        results = self.run(jaxpr, args, due)
        return results.values, results.due or _nothing()


_ENTERED = {
    "solver": _Deferring._solver,
    "while": _Deferring._while,
    "scan": _Deferring._scan,
    "cond": _Deferring._cond,
    "checkpoint": _Deferring._checkpoint,
}


def _kind(eqn: Any) -> str | None:
    """ "called", or of `_ENTERED`; None if the equation stays as it is."""
    name = eqn.primitive.name
    is_call = name in equation_parameters.CALLS or packages.is_error_alone(eqn)
    if is_call or packages.checkpointed_loop(eqn) is not None:
        return "called"
    if packages.is_solver(eqn):
        return "solver"
    if name == "while":
        condition = equation_parameters.while_loop(eqn).cond
        of_batch = condition.out_avals[0].shape  # each item ends by itself, and what it computes then is none
        return None if of_batch or any(map(packages.holds_errors, condition.eqns)) else name
    if name == "cond":
        return name if equation_parameters.cond(eqn).platforms is None else None
    return "checkpoint" if checkpoints.is_checkpoint(eqn) else name if name in _ENTERED else None


def _split(operands: list[Any], first: int, second: int) -> tuple[list[Any], list[Any], list[Any]]:
    return operands[:first], operands[first : first + second], operands[first + second :]


# What an equation is


def _may_never_end(eqn: Any) -> bool:
    is_endless = eqn.primitive.name == "while" and not packages.counts_up(eqn)
    return is_endless or any(map(_may_never_end, packages.inside(eqn)))


def _can_wait(eqn: Any, is_entered: bool = True) -> bool:
    """Whether errors that are due before the equation, or in it, can be raised after it.

    is_entered: what it is in is called, or one of `_ENTERED`.
    """
    if packages.error(eqn) is not None:
        return is_entered
    if effects.is_bound_by_jax(eqn) or (is_of_others(eqn.primitive) and not packages.is_pure(eqn)):
        return False
    if eqn.primitive.name == "while" and not is_entered and not packages.counts_up(eqn):
        return False
    if packages.is_solver(eqn) and _may_never_end(eqn):
        return False
    is_entered = is_entered and _kind(eqn) is not None
    return all(_can_wait(inner, is_entered) for inner in packages.inside(eqn))


def _conditions(jaxpr: Any) -> set[jaxprs.Var]:
    """The variables that are read only for whether an error is due, and for which message."""
    of_errors: set[jaxprs.Var] = set()
    others = {v for v in jaxpr.outvars if jaxprs.is_var(v)}
    for eqn in jaxpr.eqns:
        is_error = packages.error(eqn) is not None or packages.is_error_alone(eqn)
        (of_errors if is_error else others).update(v for v in eqn.invars if jaxprs.is_var(v))
    return of_errors - others


# Raising


@dataclass(frozen=True)
class Check:
    """errors: by their numbers, which begin with 1."""

    errors: tuple[PackageError, ...]

    def passed(self, due: Sequence[Any], values: Sequence[Any], by_tangents: bool = True) -> list[Any]:
        """The values, unless an error is due.

        by_tangents: tangents pass the check, too, as they must where nothing else has them pass: a derivative
            may be computed without the value.
        """
        values = list(values)
        places = [i for i, x in enumerate(values) if jaxprs.is_array(x)]
        checked = self._passing(by_tangents)(*due, *(values[i] for i in places))
        for i, x in zip(places, checked, strict=True):
            values[i] = x
        return values

    def _passing(self, by_tangents: bool) -> Callable[..., list[Any]]:
        @jax.custom_jvp
        def passing(error: Any, message: Any, *values: Any) -> list[Any]:
            # For a batch as a whole: by a condition for each item both branches would run.
            number = packages.largest_of_batch(error)
            which = packages.largest_of_batch(jnp.where(error == number, message, 0))
            if not jaxprs.any_tracer([number, which]):
                self._raise(number, which)
                return list(values)
            types = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in values]

            def fail(*_: Any) -> Any:
                return jax.pure_callback(self._raise, types, number, which)

            return jax.lax.cond(number > 0, fail, lambda *xs: list(xs), *values)

        def jvp(primals: Any, tangents: Any) -> Any:
            dots = list(tangents[2:])
            if by_tangents:
                dots = _multiplied(self.one(primals[:2]), dots)
            return passing(*primals), dots

        passing.defjvp(jvp, symbolic_zeros=True)
        return passing

    def one(self, due: Sequence[Any]) -> Any:
        """The number 1, unless an error is due."""
        (one,) = self._passing(by_tangents=False)(*due, jnp.float32(1))
        return one

    def _raise(self, number: Any, which: Any) -> None:
        if number > 0:
            self.errors[int(number) - 1].raise_(np.asarray(which))


@dataclass(frozen=True)
class Guard:
    """The check of a Program's results, two of which say what is due: those at these places."""

    check: Check
    error: int
    message: int

    def __call__(self, results: Sequence[Any], arrays: Sequence[Any]) -> list[Any]:
        """The arrays, which are computed with the results, unless an error is due."""
        return _multiplied(self.check.one([results[self.error], results[self.message]]), arrays)

    def kept(self, used: Sequence[bool]) -> Guard | None:
        """The same where some results are left away; None without one of its own."""
        if not (used[self.error] and used[self.message]):
            return None
        return Guard(self.check, sum(used[: self.error]), sum(used[: self.message]))


def _multiplied(one: Any, arrays: Sequence[Any]) -> list[Any]:
    return [x if jaxprs.is_zero(x) else x * one.astype(x.dtype) for x in arrays]
