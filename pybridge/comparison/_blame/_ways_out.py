"""What to write instead, where the equation that made a NaN or an infinity is of a known kind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...ir.program import Equation, Program
from ...ir.schema import names
from ...ir.types import Atom, Var
from ._frames import Frame, element_at
from ._stages import Run

if TYPE_CHECKING:
    from ._report import Kind, NonFinite

LATE_GUARD = (
    "a `where` (or mask) guards too late: the branch that is not taken has an infinite or NaN derivative, "
    "and 0 * inf is NaN; make the operand harmless first: where(ok, f(where(ok, x, 1.0)), 0.0)"
)
_OVERFLOW = "the result is beyond {dtype}'s largest number, {largest:.3g}: scale, take logarithms, or 64 bits"
_AT_ZERO = {
    "sqrt": "sqrt (or a norm) has no finite derivative at 0: where(x > 0, sqrt(where(x > 0, x, 1.0)), 0.0)",
    "pow": "a power below 1 has no finite derivative at 0: keep the base away from 0 by a `where` inside",
    "cbrt": "cbrt has no finite derivative at 0: keep its operand away from 0 by a `where` inside",
    "log": "log has no finite derivative at 0: keep its operand away from 0 by a `where` inside",
}
_DOMAIN = {
    "sqrt": "sqrt of a negative number: rounding may have moved a 0, then maximum(x, 0.0) before it helps",
    "rsqrt": "1 / sqrt of a negative number: rounding may have moved a 0",
    "log": "log of a negative number",
    "log1p": "log1p of a number below -1",
    "pow": "a negative number to a power that is no integer",
    "acos": "acos outside -1 .. 1: rounding may have moved it there, then clip(x, -1.0, 1.0) helps",
    "asin": "asin outside -1 .. 1: rounding may have moved it there, then clip(x, -1.0, 1.0) helps",
    "acosh": "acosh below 1",
    "atanh": "atanh outside -1 .. 1",
    "cholesky": "the matrix is not positive definite, in rounded numbers: add a small multiple of the unit",
}


@dataclass(frozen=True, eq=False)
class Birth:
    """An equation whose result has a NaN (infinity) that no operand has; index: of an elementwise one."""

    frame: Frame
    number: int
    index: tuple[int, ...] | None
    kind: Kind
    run: Run
    value: Frame
    cause: NonFinite | None

    @property
    def equation(self) -> Equation:
        return self.frame.program.equations[self.number]

    def operand(self, i: int) -> Any:
        """The element that is met, as a number, or None where that is no one element."""
        x = self.frame.read(self.equation.inputs[i])
        found = element_at(x, self.index) if self.index is not None else None
        return None if found is None else complex(found) if np.iscomplexobj(found) else float(found)


def way_out(birth: Birth) -> str:
    op = birth.equation.op
    given = [birth.operand(i) for i in range(len(birth.equation.inputs))] if birth.index is not None else []
    if birth.kind == "nan":
        return _of_nan(birth, op, given)
    return _of_infinity(birth, op, given)


def _of_nan(birth: Birth, op: str, given: list[Any]) -> str:
    if birth.run.stage != "value" and op in _DOMAIN:  # the value has it too, where it does not matter
        return LATE_GUARD
    if birth.run.stage != "value" and (op in ("mul", "div", "dot_general") or birth.cause is not None):
        if _masked(birth):
            return LATE_GUARD
        if (singular := _singular(birth)) is not None:
            return _AT_ZERO[singular]
    if op in ("mul", "dot_general"):
        return "0 * inf: a mask by multiplication keeps the NaN; select by `where`, with a harmless operand"
    if op == "div" and given and given[1] == 0:
        return "0 / 0: where(y != 0, x / where(y != 0, y, 1.0), 0.0)"
    if op == "div":
        return "inf / inf: divide before both overflow, or work with logarithms"
    if op in ("sub", "add"):
        return "inf - inf: subtract before both are infinite, as logsumexp and softmax do with the maximum"
    if op in ("gather", "dynamic_slice"):
        return "an index is out of range, and what is read there is filled with NaN"
    return _DOMAIN.get(op, f"{op} has no value here")


def _of_infinity(birth: Birth, op: str, given: list[Any]) -> str:
    name = birth.equation.outputs[0].type.dtype
    if birth.run.stage != "value" and (singular := _singular(birth)) is not None:
        return _AT_ZERO[singular]
    if op == "log" and given[0] == 0:
        if "exp" in _ancestors(birth.frame, birth.equation.inputs[0]):
            return "log of an exp that underflowed: logsumexp, log_softmax or log_sigmoid do both at once"
        return "log of 0: where(x > 0, log(where(x > 0, x, 1.0)), ...), or xlogy for x * log(y)"
    if op == "div" and given[1] == 0:
        return "division by 0: where(y != 0, x / where(y != 0, y, 1.0), 0.0)"
    if op in ("rsqrt", "integer_pow", "pow") and given[0] == 0:
        return "a negative power of 0: keep the base away from 0"
    if op in ("exp", "exp2", "expm1", "sinh", "cosh"):
        return (
            f"{op} overflows {name}: subtract the maximum first, as logsumexp and softmax do, or use the "
            "function that has it inside (softplus, log_sigmoid, logaddexp)"
        )
    if op == "select_n":
        return "an infinity is selected here that is written in the function"
    largest = {"f16": 65504.0, "bf16": 3.39e38, "f32": 3.4e38, "c64": 3.4e38}.get(name, 1.8e308)
    return _OVERFLOW.format(dtype=name, largest=largest)


def _masked(birth: Birth) -> bool:
    """Whether the 0 of 0 * inf is what a `where` gives to the branch that is not taken."""
    zeros = [a for a in birth.equation.inputs if _has_zero(birth, a)]
    return any("select_n" in _zero_ancestors(birth.frame, atom) for atom in zeros)


def _has_zero(birth: Birth, atom: Atom) -> bool:
    x = birth.frame.read(atom)
    at_index = element_at(x, birth.index) if birth.index is not None else None
    return bool(at_index == 0) if at_index is not None else bool(np.any(np.asarray(x) == 0))


_PASSING = frozenset(
    names(
        """
        mul neg div convert_element_type copy reshape broadcast_in_dim squeeze transpose slice
        reduce_sum add dynamic_slice gather rev concatenate pad dot_general
        """
    )
)


def _zero_ancestors(frame: Frame, atom: Atom, most: int = 200) -> set[str]:
    """The operations on the way back from a zero over operands that have zeros, loops' inputs included."""
    found: set[str] = set()
    waiting: list[tuple[Frame, Atom]] = [(frame, atom)]
    for _ in range(most):
        if not waiting:
            break
        frame, atom = waiting.pop()
        if not isinstance(atom, Var):
            continue
        k = frame.maker(atom)
        if k is None:
            if frame.outside is not None:
                waiting.append(frame.outside(atom.id, _has_zeros))
            continue
        eq = frame.program.equations[k]
        found.add(eq.op)
        if eq.op in _PASSING:
            waiting += [(frame, a) for a in eq.inputs if np.any(np.asarray(frame.read(a)) == 0)]
        elif eq.op != "select_n":
            inner = frame.inside(eq, eq.outputs.index(atom), _has_zeros)
            waiting += [] if inner is None else [inner]
    return found


def _has_zeros(x: Any) -> Any:
    return (x == 0).any()


def _ancestors(frame: Frame, atom: Atom, most: int = 50) -> set[str]:
    """The operations on the way to a value, in the same body."""
    found: set[str] = set()
    waiting = [atom]
    for _ in range(most):
        if not waiting:
            break
        atom = waiting.pop()
        k = frame.maker(atom) if isinstance(atom, Var) else None
        if k is not None:
            found.add(frame.program.equations[k].op)
            waiting += frame.program.equations[k].inputs
    return found


def _singular(birth: Birth) -> str | None:
    """The function with an infinite derivative at 0 which the user's line, or that of the cause, has."""
    cause: NonFinite | None = birth.cause
    lines = {birth.equation.source}
    while cause is not None:
        lines.add(cause.source)
        cause = cause.cause
    ops = {op for op, line in _operations(birth.value.program) if line in lines}
    return next((op for op in _AT_ZERO if op in ops), None)


def _operations(program: Program) -> Iterator[tuple[str, str]]:
    for eq in program.equations:
        yield eq.op, eq.source
        for body in eq.running_bodies:
            yield from _operations(body)
