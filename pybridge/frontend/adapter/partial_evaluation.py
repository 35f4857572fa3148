"""Primitives of which JAX can compute a part before the rest: reverse mode needs primals before tangents.

JAX evaluates partially while it traces (`JaxprTrace`) and, in checkpoints, from jaxpr to jaxprs. Without
rules an equation with one unknown operand is unknown as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jax.interpreters import partial_eval as pe

from . import internals, jaxprs
from .extend import DropVar, Var, new_jaxpr_eqn


def is_unknown(x: Any) -> bool:
    """Whether a value is of a partial evaluation, and comes later than those that are known."""
    return isinstance(x, pe.JaxprTracer)


@dataclass(frozen=True)
class Halves:
    """An equation as two of another primitive, the first of which does without its trailing operands.

    first: the parameters of (leading operands...) -> (results...).
    second: of (those at `residuals`..., trailing operands...) -> (other results...).
    residuals: places in the list of leading operands and results of the first.
    results: places of the equation's results in the list of results of both.
    """

    primitive: Any
    leading: int
    first: Mapping[str, Any]
    second: Mapping[str, Any]
    residuals: tuple[int, ...]
    results: tuple[int, ...]


Rule = Callable[[Sequence[bool], Mapping[str, Any]], Halves | None]
"""(which operands are unknown, parameters) -> the halves, or None where one or no half would be known."""


def register(primitive: Any, rule: Rule) -> None:
    """Has JAX compute the first half of an equation of the primitive where it can."""

    def while_tracing(trace: Any, *tracers: Any, **params: Any) -> list[Any]:
        halves = rule([not t.is_known() for t in tracers], params)
        if halves is None:
            return trace.default_process_primitive(primitive, tracers, params)

        def bind(operands: Sequence[Any], params: Mapping[str, Any]) -> list[Any]:
            return list(trace.default_process_primitive(halves.primitive, operands, dict(params)))

        leading, trailing = tracers[: halves.leading], tracers[halves.leading :]
        known = bind(leading, halves.first)
        available = [*leading, *known]
        both = [*known, *bind([*(available[i] for i in halves.residuals), *trailing], halves.second)]
        return [both[i] for i in halves.results]

    def in_checkpoints(
        saveable: Callable[..., Any], unknown: Sequence[bool], ready: Sequence[bool], eqn: Any
    ) -> Parts:
        there = {v for v, yes in zip(eqn.invars, ready, strict=True) if yes and jaxprs.is_var(v)}
        return _parts(eqn, rule, unknown, there, _is_kept(saveable, eqn))

    pe.custom_partial_eval_rules[primitive] = while_tracing
    pe.partial_eval_jaxpr_custom_rules[primitive] = in_checkpoints


Parts = tuple[Any, Any, Sequence[bool], Sequence[bool], list[Var]]
"""The equation that is computed at first, the one that waits, which results are unknown at first, which are
there for what waits, and the variables that this needs from before."""


def _is_kept(saveable: Callable[..., Any], eqn: Any) -> bool:
    answer = saveable(eqn.primitive, *(v.aval for v in eqn.invars), **eqn.params)
    return not isinstance(internals.ensure_enum(answer), internals.RecomputeType)


def _parts(eqn: Any, rule: Rule, unknown: Sequence[bool], ready: set[Any], kept: bool) -> Parts:
    def missing(atoms: Sequence[Any]) -> list[Var]:
        return list(dict.fromkeys(v for v in atoms if jaxprs.is_var(v) and v not in ready))

    none, every = [False] * len(eqn.outvars), [True] * len(eqn.outvars)
    if not any(unknown):
        return (eqn, None, none, none, []) if kept else (eqn, eqn, none, every, missing(eqn.invars))
    halves = rule(unknown, eqn.params)
    if halves is None:
        return None, eqn, every, every, missing(eqn.invars)
    first, second = _halved(eqn, halves)
    late = [place >= len(first.outvars) for place in halves.results]
    if kept:
        return first, second, late, late, missing(second.invars)
    return first, eqn, late, every, missing(eqn.invars)


def _halved(eqn: Any, halves: Halves) -> tuple[Any, Any]:
    own = dict(zip(halves.results, eqn.outvars, strict=True))

    def equation(operands: Sequence[Any], params: Mapping[str, Any], start: int) -> Any:
        avals, effects = halves.primitive.abstract_eval(*(v.aval for v in operands), **params)
        found = [own.get(start + i) for i in range(len(avals))]
        outvars = [
            Var(a) if v is None or isinstance(v, DropVar) else v for a, v in zip(avals, found, strict=True)
        ]
        own_params, place = dict(params), {"source_info": eqn.source_info, "ctx": eqn.ctx}
        return new_jaxpr_eqn(operands, outvars, halves.primitive, own_params, effects, **place)

    leading, trailing = eqn.invars[: halves.leading], eqn.invars[halves.leading :]
    first = equation(leading, halves.first, 0)
    available = [*leading, *first.outvars]
    return first, equation(
        [*(available[i] for i in halves.residuals), *trailing], halves.second, len(first.outvars)
    )
