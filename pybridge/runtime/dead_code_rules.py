"""JAX's dead code rules of `julia_call` and `julia_jvp`: results that nobody uses, and what they need, go.

After `jvp` of a user's custom_vjp function it is this that removes the tangents that do not exist.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

from ..ir.dead_code import needed_inputs, restricted, with_inputs
from ..ir.deferred import remembered
from ..ir.program import Program
from .tangents import with_results

Rule = Callable[[list[bool], Any], tuple[list[bool], Any]]


def _rule(restrict: Callable[..., Any]) -> Rule:
    """restrict: (parameters, which results are used) -> (parameters, which operands are needed)."""

    def rule(used: list[bool], eqn: Any) -> tuple[list[bool], Any]:
        if all(used):
            return [True] * len(eqn.invars), eqn
        if not any(used):
            return [False] * len(eqn.invars), None
        params, needed = restrict(eqn.params, tuple(used))
        return list(needed), eqn.replace(
            invars=list(itertools.compress(eqn.invars, needed)),
            outvars=list(itertools.compress(eqn.outvars, used)),
            params={**eqn.params, **params},
        )

    return rule


@remembered(maxsize=1024)
def _alive(program: Program, used: tuple[bool, ...]) -> tuple[Program, tuple[bool, ...]]:
    """The Program of the results in use, and which of its inputs they need."""
    alive = restricted(program, used)
    needed = tuple(needed_inputs(alive))
    return with_inputs(alive, needed), needed


def _call_with_results(params: Mapping[str, Any], used: tuple[bool, ...]):
    program, needed = _alive(params["program"], used)
    residuals = sum(used[len(used) - params.get("residuals", 0) :])
    kept = {"program": program, "residuals": residuals, "guard": _kept(params, used), "items": None}
    return kept, needed


def _joint_with_results(params: Mapping[str, Any], used: tuple[bool, ...]):
    program, halves, needed = with_results(params["program"], params["halves"], used)
    return {"program": program, "halves": halves, "guard": _kept(params, used)}, needed


def _kept(params: Mapping[str, Any], used: tuple[bool, ...]) -> Any:
    guard = params.get("guard")
    return guard and guard.kept(used)


of_call = _rule(_call_with_results)
of_joint_call = _rule(_joint_with_results)
