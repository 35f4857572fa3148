"""Which of the user's derivative rules in a function are not the derivatives of what they stand for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import numpy as np

from ..frontend.adapter import custom_rules, jaxprs, source
from ..frontend.adapter import equation_parameters as parameters
from ._derivative_check import check_problem, derivative_of
from ._evaluation import Evaluation
from ._problem import problem

_WITH_RULES = frozenset({"custom_jvp_call", "custom_vjp_call", "julia_function"})


def blamed(run: Evaluation, rtol: float | None) -> tuple[str, ...]:
    """The rules' lines. Each rule is checked by itself at the operands that it has in the function."""
    with run.types():
        closed = run.jaxpr()
        operands = [np.asarray(x) if not _is_key(x) else x for x in (*run.point, *run.others)]
        found = dict.fromkeys(_wrong_rules(closed, jax.tree.leaves(operands), rtol))
    return tuple(found)


def _is_key(x: Any) -> bool:
    return jax.dtypes.issubdtype(getattr(x, "dtype", np.dtype(float)), jax.dtypes.extended)


def _wrong_rules(closed: Any, operands: Sequence[Any], rtol: float | None) -> Iterator[str]:
    """In the order in which the equations run."""
    jaxpr = getattr(closed, "jaxpr", closed)
    values = dict(jaxprs.constants(closed)) | dict(zip(jaxprs.inputs(closed), operands, strict=True))
    for eqn in jaxpr.eqns:
        given = [values[atom] if jaxprs.is_var(atom) else atom.val for atom in eqn.invars]
        function = jaxprs.function_of(eqn, jaxpr)
        if eqn.primitive.name == "stop_gradient":
            yield _at("stop_gradient", source.line_of(eqn))
        elif eqn.primitive.name in _WITH_RULES:
            if _is_wrong(function, given, rtol):
                yield _line(eqn)
        elif (body := _body(eqn, given)) is not None:
            yield from _wrong_rules(*body, rtol)
        values |= dict(zip(eqn.outvars, function(*given), strict=True))


def _is_wrong(function: Callable, operands: Sequence[Any], rtol: float | None) -> bool:
    try:
        task = problem(function, tuple(operands), seed=0)
        return bool(check_problem(derivative_of(task, double=jax.config.jax_enable_x64), task, rtol).wrong)
    except Exception:  # it cannot be differentiated by itself, by its integers alone, say
        return False


def _line(eqn: Any) -> str:
    if eqn.primitive.name == "julia_function":
        return _at(f"the Julia function {eqn.params['call'].function.name}", source.line_of(eqn))
    return custom_rules.line_of_rule(eqn) or f"a rule of {eqn.primitive.name}"


def _at(what: str, line: str) -> str:
    """Called by JAX or by `check` itself, it has no line of the user's."""
    return f"{what}, called at {line}" if line else what


def _body(eqn: Any, given: Sequence[Any]) -> tuple[Any, list[Any]] | None:
    """The jaxpr that an equation runs, first of all, and what it has as operands then."""
    match eqn.primitive.name:
        case "checkpoint" | "remat" | "remat2":
            return parameters.remat(eqn).body, list(given)
        case name if name in parameters.CALLS:
            return parameters.called(eqn), list(given)
        case "scan":
            scan = parameters.scan(eqn)
            fixed, first = scan.consts + scan.carry, -1 if scan.reverse else 0
            if scan.length:
                return scan.body, [*given[:fixed], *(x[first] for x in given[fixed:])]
        case "while":
            loop = parameters.while_loop(eqn)
            return loop.body, list(given[loop.cond_consts :])
        case "cond":
            branches = parameters.cond(eqn).branches
            return branches[int(np.clip(int(given[0]), 0, len(branches) - 1))], list(given[1:])
    return None
