"""`blame`: what is numerically wrong with a function, and where."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...errors import NotDifferentiable
from ...frontend.static_arguments import Argnames, Argnums, static_arguments
from .._problem import checked_problem, plain_function
from ._frames import Frame
from ._nonfinite import first_nonfinite
from ._report import Blame, NonFinite
from ._rounding import rounding_of
from ._stages import Missing, derivative_runs, value_run


def blame(
    f: Callable,
    *args: Any,
    seed: int = 0,
    static_argnums: Argnums = None,
    static_argnames: Argnames = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Blame:
    """What is numerically wrong with `f` and its derivatives at `args`, by equation, source line and trip.

    NaN and infinities in the value, JAX's JVP and JAX's VJP: each is traced back to the equation that made it
    of finite numbers, in whichever body, branch and trip of a loop, with the operands and, where the pattern
    is known, what to write instead.

    Rounding: a bound, to first order, of the error of the results, to which each equation adds its own error
    times its adjoint. It is blamed where the function loses half its digits, and a hundred times what
    rounding its arguments does. Branches are taken as they are: that a comparison of rounded numbers may
    turn out otherwise is no part of it.

    seed: of the random tangents and cotangents. static_argnums, static_argnames: arguments that are not
    arrays but hashable values, as for `bridge`. progress: called with what is being done.

    Raises what `check` raises before anything runs.
    """
    progress("tracing")
    args, _, fixed = static_arguments(f, static_argnums, static_argnames).split(args, {})
    task = checked_problem(fixed.into(plain_function(f)), args, seed)
    run = value_run(task)
    frame = Frame(run.program, run.arguments)
    found, notes = [], []
    in_value = first_nonfinite(run, frame)
    if in_value is not None:
        found.append(in_value)
    for derivative in derivative_runs(task):
        progress(f"the {derivative.stage}")
        if isinstance(derivative, Missing):
            notes.append(f"there is no {derivative.stage}: {derivative.reason}")
            continue
        try:
            born = first_nonfinite(derivative, frame)
        except NotDifferentiable as reason:  # forward mode of a rule for reverse mode
            notes.append(f"there is no {derivative.stage}: {str(reason).partition('.')[0]}")
            continue
        if born is not None and not _follows(born, in_value):
            found.append(born)
    rounding = None
    if in_value is None:
        rounding = rounding_of(task, run, frame, progress)
        if rounding is None:
            notes.append("there is no bound of rounding errors: a derivative of the algorithm is not finite")
    return Blame(task.name, task.arguments(), tuple(found), rounding, tuple(notes))


def _follows(born: NonFinite, in_value: NonFinite | None) -> bool:
    """Whether it is of the lines that the value's is of already."""
    return in_value is not None and not _lines(born).isdisjoint(_lines(in_value))


def _lines(found: NonFinite | None) -> set[str]:
    lines = set()
    while found is not None:
        lines.add(found.source or found.equation)
        found = found.cause
    return lines
