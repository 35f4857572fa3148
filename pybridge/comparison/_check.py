"""`check`: whether the derivative of a function, its own rules included, is the derivative of its value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ..frontend.static_arguments import Argnames, Argnums, static_arguments
from ._check_report import Check
from ._derivative_check import best_derivative, check_problem
from ._evaluation import Evaluation
from ._problem import checked_problem, plain_function
from ._wrong_rules import blamed


def check(
    f: Callable,
    *args: Any,
    seed: int = 0,
    rtol: float | None = None,
    static_argnums: Argnums = None,
    static_argnames: Argnames = None,
) -> Check:
    """Whether `f`'s derivatives at `args`, made by JAX and by rules of one's own, are those of its value.

    Each leaf of the arguments is moved along a random direction, and for each leaf of the results the
    difference quotients are held against the JVP and the VJP; in float64 where `f` runs in it, whatever the
    dtypes of the arguments. `check(f, *args).ok` is false where one is wrong; printed, the result says for
    which argument, and where the rule is that is to blame.

    Kinks, jumps and noise are not called wrong. Where `f` has a kink at `args`, its derivative there can be
    any number, and is checked at points near `args`.

    seed: of the directions. rtol: the relative error to allow; 1e-5 by default, 1e-2 where `f` is in float32.
    static_argnums, static_argnames: arguments that are not arrays but hashable values, as for `bridge`.

    Raises what `compare` raises before anything runs, and NotDifferentiable where JAX has neither derivative.
    """
    args, _, fixed = static_arguments(f, static_argnums, static_argnames).split(args, {})
    task = checked_problem(fixed.into(f), args, seed)
    derivative, notes = best_derivative(task)
    report = check_problem(derivative, task, rtol, notes)
    if not report.wrong:
        return report
    traced = Evaluation(replace(task, f=fixed.into(plain_function(f))), derivative.run.double)
    return replace(report, rules=blamed(traced, rtol))
