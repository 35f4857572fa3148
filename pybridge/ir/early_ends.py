"""Scans whose trips do nothing once a condition on what they carry is false: such a scan is a `while`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from .program import Equation, Program
from .types import Atom, Var


@dataclass(frozen=True)
class Trip:
    """A trip of such a scan.

    condition: of `operands`, the number that is positive where the trip does anything.
    step: of some of these, `taken`, what is then carried on.
    operands: inputs of the scan's body, by number.
    checkpoint: the `remat` that the trip is in, if it is in one.
    """

    condition: Program
    step: Program
    operands: tuple[int, ...]
    taken: tuple[int, ...]
    checkpoint: Equation | None


def trip(body: Program, consts: int) -> Trip | None:
    """A scan's body as such a trip, if it is one; the first `consts` of its inputs are constants.

    It computes a condition, and then is a `cond` on that, one branch of which returns what is carried. All of
    it may be in a `remat`.
    """
    checkpoint = None
    inner, operands = body, tuple(range(len(body.inputs)))
    if [eq.op for eq in body.equations] == ["remat"] and body.equations[0].outputs == body.outputs:
        (checkpoint,) = body.equations
        places = _places(checkpoint.inputs, body.inputs)
        if places is None:
            return None
        inner, operands = checkpoint.attrs["body"], places
    *before, last = inner.equations or (None,)
    if last is None or last.op != "cond" or last.outputs != inner.outputs or len(last.attrs["branches"]) != 2:
        return None
    idle, step = last.attrs["branches"]
    taken = _places(last.inputs[1:], inner.inputs)
    returned = _places(idle.outputs, idle.inputs)
    if taken is None or returned is None or idle.equations or not isinstance(last.inputs[0], Var):
        return None
    if [operands[taken[k]] for k in returned] != list(range(consts, len(body.inputs))):
        return None
    condition = replace(inner, equations=tuple(before), outputs=(last.inputs[0],))
    return Trip(condition, step, operands, taken, checkpoint)


def _places(atoms: Sequence[Atom], among: Sequence[Var]) -> tuple[int, ...] | None:
    """Which of the variables each atom is, if all are."""
    known: dict[Atom, int] = {v: k for k, v in enumerate(among)}
    found = [known[a] for a in atoms if a in known]
    return tuple(found) if len(found) == len(atoms) else None
