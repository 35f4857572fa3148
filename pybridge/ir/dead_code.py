"""Programs of which only some results are wanted."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from .program import Equation, Program
from .types import SymDim


def restricted(program: Program, used: Sequence[bool]) -> Program:
    """The Program with the results in use alone and what they need, in loops and branches too; its inputs
    stay."""
    outputs = tuple(itertools.compress(program.outputs, used))
    live, kept = set(outputs), []
    for eq in reversed(program.equations):
        flags = [v in live for v in eq.outputs]
        if any(flags):
            eq = eq if all(flags) or eq.op not in _WITH_BODIES else _WITH_BODIES[eq.op](eq, flags)
            live.update(eq.inputs)
            kept.append(eq)
    return replace(program, equations=tuple(reversed(kept)), outputs=outputs)


def needed_inputs(program: Program) -> list[bool]:
    """Which inputs something reads: all where there are symbolic sizes, which are known from them."""
    if is_symbolic(program):
        return [True] * len(program.inputs)
    read = {*program.outputs, *(atom for eq in program.equations for atom in eq.inputs)}
    return [v in read for v in program.inputs]


def with_inputs(program: Program, kept: Sequence[bool]) -> Program:
    return replace(program, inputs=tuple(itertools.compress(program.inputs, kept)))


def is_symbolic(program: Program) -> bool:
    """Whether a size of an input is a variable."""
    return any(isinstance(dim, SymDim) for t in program.input_types for dim in t.shape)


# Equations with bodies. A derivative without its tangents would otherwise keep, as operands of a branch, the
# tangents of what has none.


def _cond(eq: Equation, used: Sequence[bool]) -> Equation:
    branches = [restricted(branch, used) for branch in eq.attrs["branches"]]
    needed = [any(flags) for flags in zip(*map(needed_inputs, branches), strict=True)]
    attrs = {**eq.attrs, "branches": tuple(with_inputs(branch, needed) for branch in branches)}
    return _narrowed(eq, [True, *needed], used, attrs)


def _remat(eq: Equation, used: Sequence[bool]) -> Equation:
    body = restricted(eq.attrs["body"], used)
    needed = needed_inputs(body)
    return _narrowed(eq, needed, used, {**eq.attrs, "body": with_inputs(body, needed)})


@dataclass(frozen=True)
class _Loop:
    """consts: of how many leading inputs the body is a function, apart from what is carried. carried: which
    of the carried values matter at the end of a trip. rest: which of the body's other results do."""

    body: Program
    consts: int
    carried: list[bool]
    rest: list[bool]

    @property
    def alive(self) -> Program:
        return restricted(self.body, [*self.carried, *self.rest])

    def settled(self) -> _Loop:
        """With all that matters to a later trip."""
        read = needed_inputs(self.alive)[self.consts : self.consts + len(self.carried)]
        carried = [a or b for a, b in zip(self.carried, read, strict=True)]
        return self if carried == self.carried else replace(self, carried=carried).settled()

    def kept(self) -> list[bool]:
        """Which inputs of the body stay: what matters at the end of a trip has a value before the first."""
        needed = needed_inputs(self.alive)
        last = self.consts + len(self.carried)
        return [*needed[: self.consts], *self.carried, *needed[last:]]


def _scan(eq: Equation, used: Sequence[bool]) -> Equation:
    consts, carry = eq.attrs["consts"], eq.attrs["carry"]
    loop = _Loop(eq.attrs["body"], consts, list(used[:carry]), list(used[carry:])).settled()
    kept = loop.kept()
    attrs = {**eq.attrs, "consts": sum(kept[:consts]), "carry": sum(loop.carried)}
    attrs["body"] = with_inputs(loop.alive, kept)
    return _narrowed(eq, kept, [*loop.carried, *loop.rest], attrs)


def _while(eq: Equation, used: Sequence[bool]) -> Equation:
    of_cond, consts = eq.attrs["cond_consts"], eq.attrs["body_consts"]
    cond = eq.attrs["cond"]
    asked = needed_inputs(cond)[of_cond:]
    loop = _Loop(eq.attrs["body"], consts, [a or b for a, b in zip(used, asked, strict=True)], []).settled()
    kept = loop.kept()
    first = [True] * of_cond
    attrs = {**eq.attrs, "body_consts": sum(kept[:consts]), "body": with_inputs(loop.alive, kept)}
    attrs["cond"] = with_inputs(cond, [*first, *loop.carried])
    return _narrowed(eq, [*first, *kept], loop.carried, attrs)


def _narrowed(eq: Equation, needed: Sequence[bool], used: Sequence[bool], attrs: dict) -> Equation:
    inputs, outputs = tuple(itertools.compress(eq.inputs, needed)), itertools.compress(eq.outputs, used)
    return replace(eq, inputs=inputs, outputs=tuple(outputs), attrs=attrs)


_WITH_BODIES: dict[str, Callable[[Equation, Sequence[bool]], Equation]] = {
    "cond": _cond,
    "remat": _remat,
    "scan": _scan,
    "while": _while,
}
