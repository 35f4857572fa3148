"""Which values have tangents, and the rules that these need."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from ...errors import NotDifferentiable
from ..numerals import COMPLEX
from ..program import Equation, Program
from ..types import Atom, TensorType, Var
from .rewriting import wrapped
from .rules import Mask, Names, remembered, rule_of

WITHOUT_TANGENT = frozenset(
    {"stop_gradient", "floor", "ceil", "round", "bitcast_convert_type", "iota", "constant", "threefry2x32"}
)
"""The primitives whose results have no tangents, though they may be inexact."""

IF_COMPLEX = frozenset({"sign"})
"""The primitives whose results have tangents only if they are complex."""

BY_THE_FIRST = frozenset({"select_and_gather_add", "select_and_scatter_add"})
"""The primitives whose result has a tangent by the first operand alone."""

ONE_BY_ONE = frozenset({"sort", "optimization_barrier"})
"""The primitives whose results have the tangents of the operands at the same places."""


@remembered(maxsize=1024)
def activated(program: Program, active: Mask) -> Program:
    """The Program with the rules that a derivative with respect to the `active` inputs needs.

    Each of these equations has a body `call` that is the equation as it was: what remains of it in a
    derivative has its name again (`settled`).

    Raises whatever the user's rules raise for these operands, NotDifferentiable where there is no rule, and
    NoProgram where Programs lack what a rule does.
    """
    if not program.rule_names:
        return program
    names = Names(program.rules)
    result, _ = _Activation(names).program(program, active)
    return replace(result, rules=names.rules)


def active_results(program: Program, active: Mask) -> Mask:
    """Which outputs have tangents if the `active` inputs have; it raises as `activated` does."""
    return _Activation(Names(program.rules)).program(program, active)[1]


class _Activation:
    def __init__(self, names: Names):
        self.names = names
        self.found: dict[tuple[int, Mask], tuple[Program, Mask]] = {}

    def program(self, program: Program, active: Mask) -> tuple[Program, Mask]:
        """The Program with its rules for these inputs, and which of its outputs have tangents."""
        key = id(program), active
        if key not in self.found:
            self.found[key] = self._program(program, active)
        return self.found[key]

    def _program(self, program: Program, active: Mask) -> tuple[Program, Mask]:
        activity: dict[Atom, bool] = dict(zip(program.inputs, active, strict=True))
        equations: list[Equation] = []
        ids = itertools.count(_variables(program))
        for eq in program.equations:
            given = tuple(activity.get(a, False) for a in eq.inputs)
            new, active_out = self.equation(eq, given) if any(given) else (eq, [False] * len(eq.outputs))
            equations += _stopped(new, active_out, ids) if new is not eq and eq.rule_name else [new]
            activity.update(zip(eq.outputs, active_out, strict=True))
        active_out = tuple(activity.get(a, False) for a in program.outputs)
        old = program.equations
        if len(equations) != len(old) or any(map(operator.is_not, equations, old)):
            program = replace(program, equations=tuple(equations), rules={})  # with variables of its own
        return program, active_out

    def equation(self, eq: Equation, given: Mask) -> tuple[Equation, Sequence[bool]]:
        if eq.rule_name is not None:
            return self.custom(eq, given)
        if eq.op in _WITH_BODIES:
            return _WITH_BODIES[eq.op](self, eq, given)
        if eq.op in ONE_BY_ONE:
            return eq, given
        active = eq.op not in WITHOUT_TANGENT and (eq.op not in BY_THE_FIRST or given[0])
        return eq, [active and _can_be_active(eq.op, v.type) for v in eq.outputs]

    def custom(self, eq: Equation, given: Mask) -> tuple[Equation, Sequence[bool]]:
        call = wrapped(eq)
        if not any(v.type.inexact for v in eq.outputs):
            attrs = {"call": call, "jvp": _without_tangents(eq, call)}
            return replace(eq, op="custom_jvp", attrs=attrs), [False] * len(eq.outputs)
        rule = rule_of(eq, self.names.rules)
        if rule is None:
            at = f" (at {eq.source})" if eq.source else ""
            raise NotDifferentiable(f"{eq.rule_name}{at}")
        traced = rule.traced(given)
        bodies = {name: self.names.adopted(body.program) for name, body in traced.bodies.items()}
        return replace(eq, attrs={"call": call, **bodies}), traced.active

    def settled(self, body: Program, flags: list[bool], carry: slice) -> tuple[Program, Mask]:
        """A loop's body for operands with `flags`: what is carried has a tangent from the start if it has one
        after a trip. `flags` is changed to that."""
        while True:
            result, active_out = self.program(body, tuple(flags))
            carried = [a or b for a, b in zip(flags[carry], active_out, strict=False)]
            if carried == flags[carry]:
                return result, (*carried, *active_out[len(carried) :])
            flags[carry] = carried


def _can_be_active(op: str, type_: TensorType) -> bool:
    return type_.dtype in COMPLEX if op in IF_COMPLEX else type_.inexact


def _variables(program: Program) -> int:
    return len(program.inputs) + sum(len(eq.outputs) for eq in program.equations)


def _stopped(eq: Equation, active_out: Sequence[bool], ids: Iterator[int]) -> list[Equation]:
    """The equation, whose rule gives zeros for the results that are not active, so that these stop there."""
    stopped = [not active and v.type.inexact for v, active in zip(eq.outputs, active_out, strict=True)]
    own = [Var(next(ids), v.type) if stops else v for v, stops in zip(eq.outputs, stopped, strict=True)]
    stops = [
        Equation("stop_gradient", (inner,), (outer,), source=eq.source)
        for inner, outer in zip(own, eq.outputs, strict=True)
        if inner is not outer
    ]
    return [replace(eq, outputs=tuple(own)), *stops] if stops else [eq]


def _without_tangents(eq: Equation, call: Program) -> Program:
    """The body `jvp` of an equation with no inexact results."""
    ids = itertools.count(len(eq.inputs) + len(eq.outputs))
    tangents = tuple(Var(next(ids), a.type) for a in eq.inputs if a.type.inexact)
    return replace(call, inputs=(*call.inputs, *tangents))


# Primitives with bodies


def _remat(activation: _Activation, eq: Equation, given: Mask):
    body, active_out = activation.program(eq.attrs["body"], given)
    return _with(eq, body=body), active_out


def _scan(activation: _Activation, eq: Equation, given: Mask):
    first = eq.attrs["consts"]
    carry = slice(first, first + eq.attrs["carry"])
    body, active_out = activation.settled(eq.attrs["body"], list(given), carry)
    return _with(eq, body=body), active_out


def _while(activation: _Activation, eq: Equation, given: Mask):
    first = eq.attrs["body_consts"]
    flags = list(given[eq.attrs["cond_consts"] :])
    body, active_out = activation.settled(eq.attrs["body"], flags, slice(first, len(flags)))
    return _with(eq, body=body), active_out


def _passes(activation: _Activation, eq: Equation, given: Mask):
    """Each pass reads the records that those before it left."""
    rest = iter(given[eq.attrs["cond_consts"] :])
    consts = list(itertools.islice(rest, eq.attrs["consts"]))
    records: list[bool] = []
    passes: list[Program] = []
    active_out: list[bool] = []
    for body, count in zip(eq.attrs["passes"], eq.attrs["carry"], strict=True):
        flags = [*consts, *itertools.islice(rest, count), *records]
        body, results = activation.settled(body, flags, slice(len(consts), len(consts) + count))
        passes.append(body)
        active_out += results[:count]
        records += results[count:]
    return _with(eq, passes=tuple(passes)), active_out


def _cond(activation: _Activation, eq: Equation, given: Mask):
    branches = [activation.program(branch, given[1:]) for branch in eq.attrs["branches"]]
    active_out = [any(flags) for flags in zip(*(active_out for _, active_out in branches), strict=True)]
    return _with(eq, branches=tuple(b for b, _ in branches)), active_out


def _linear_solve(activation: _Activation, eq: Equation, given: Mask):
    """The matrix has a tangent by what `matvec` closes over."""
    matvec, count = eq.attrs["matvec"], eq.attrs["consts"][0]
    right = given[sum(eq.attrs["consts"]) :]
    mask = (*given[:count], *(False for _ in right))
    matvec, active_out = activation.program(matvec, mask)
    active = any(active_out) or any(right)
    return _with(eq, matvec=matvec), [active and k < len(right) for k in range(len(eq.outputs))]


def _linear_call(activation: _Activation, eq: Equation, given: Mask):
    """By its residuals the derivative is that of the call."""
    count = eq.attrs["residuals"]
    mask = (*given[:count], *(False for _ in given[count:]))
    call, active_out = activation.program(eq.attrs["call"], mask)
    return _with(eq, call=call), [active or any(given[count:]) for active in active_out]


def _with(eq: Equation, **bodies: Program | tuple[Program, ...]) -> Equation:
    new = replace(eq, attrs={**eq.attrs, **bodies})
    same = all(a is b for a, b in zip(new.bodies, eq.bodies, strict=True))
    return eq if same else new


_WITH_BODIES: dict[str, Callable[[_Activation, Equation, Mask], tuple[Equation, Sequence[bool]]]] = {
    "remat": _remat,
    "scan": _scan,
    "while": _while,
    "while_passes": _passes,
    "cond": _cond,
    "custom_linear_solve": _linear_solve,
    "linear_call": _linear_call,
}
