"""What is called: a Julia function for given types of arguments, or one of its derivatives.

Every derivative up to the second is one of four, each linear in what follows the arguments x:

    forward A            x, ẋ_A          ->  ẏ = J ẋ
    reverse A            x, ȳ            ->  x̄_A = Jᵀ ȳ
    forward A, forward B x, ẋ_A, ẋ_B     ->  D²f[ẋ_A, ẋ_B]
    reverse A, forward B x, ȳ, ẋ_B       ->  D²f[·_A, ẋ_B]ᵀ ȳ

A and B are places among x, and y means the inexact results. Second derivatives are symmetric, so the
transposes of the four are again among the four: reverse over reverse, which Enzyme lacks, is never needed.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Literal

from ..errors import NotDifferentiable
from ..ir.types import TensorType
from .source import Source

Kind = Literal["forward", "reverse"]


@dataclass(frozen=True)
class Function:
    """A Julia function as the user asked for it."""

    name: str
    source: Source
    jvp: str | None
    vjp: str | None
    inplace: bool
    inputs: Literal["auto", "view", "copy"]
    backend: str | None = None
    """Of ADTypes, as Julia code: what differentiates it, where not Enzyme does."""


@dataclass(frozen=True)
class Step:
    """One differentiation, with respect to the inputs at these places."""

    kind: Kind
    active: tuple[int, ...]


@dataclass(frozen=True)
class Call:
    """`arguments` and `result` are trees as text, inputs and outputs the types of their leaves.

    narrows: whether Julia may return wider dtypes than `result` tells.
    batch: the length of the leading axis over which one call loops; `batched` says which operands have it.
    """

    function: Function
    arguments: str
    result: str
    inputs: tuple[TensorType, ...]
    outputs: tuple[TensorType, ...]
    narrows: bool
    steps: tuple[Step, ...] = ()
    batch: int | None = None
    batched: tuple[bool, ...] = ()

    def __hash__(self) -> int:
        return self._hash

    @functools.cached_property
    def _hash(self) -> int:  # every call of the function asks for it
        return hash((self.function, self.arguments, self.result, self.steps, self.batch, self.batched))

    @property
    def inexact_outputs(self) -> tuple[TensorType, ...]:
        return tuple(t for t in self.outputs if t.inexact)

    @functools.cached_property
    def groups(self) -> tuple[tuple[TensorType, ...], ...]:
        """The types of the operands: x, then each group in which the call is linear."""
        linear = (self.inexact_outputs if s.kind == "reverse" else self._at(s) for s in self.steps)
        return (self.inputs, *linear)

    @property
    def operands(self) -> tuple[TensorType, ...]:
        return tuple(t for group in self.groups for t in group)

    @property
    def results(self) -> tuple[TensorType, ...]:
        if not self.steps:
            return self.outputs
        return self._at(self.steps[0]) if self.steps[0].kind == "reverse" else self.inexact_outputs

    def _at(self, step: Step) -> tuple[TensorType, ...]:
        return tuple(self.inputs[i] for i in step.active)

    def split(self, operands):
        """The operands by group."""
        rest, parts = list(operands), []
        for group in self.groups:
            parts.append(rest[: len(group)])
            rest = rest[len(group) :]
        return parts

    def with_steps(self, *steps: Step) -> Call:
        return replace(self, steps=steps)

    def differentiated(self, active: tuple[int, ...]) -> Call:
        """The derivative of this call along x's inputs at these places, linear in tangents that come last."""
        if len(self.steps) == 2:
            raise NotDifferentiable(
                f"{self.function.name}: third derivatives of Julia functions are not supported; "
                "first and second ones are, in every combination of forward and reverse mode"
            )
        if self.function.backend and self.steps:
            raise NotDifferentiable(
                f"{self.function.name}: {self.function.backend} gives first derivatives of Julia functions "
                'alone; engine="enzyme" and engine="transpose" give second ones too'
            )
        if self.function.jvp or self.function.vjp:
            # the user's rules have tangents and cotangents of all inexact arguments
            active = tuple(i for i, t in enumerate(self.inputs) if t.inexact)
        return self.with_steps(*self.steps, Step("forward", active))

    def transposed(self, group: int) -> tuple[Call, tuple[int | None, ...]]:
        """The transpose in one linear group (1 or 2), and which groups it takes; None is the cotangent."""
        first = self.steps[0]
        if len(self.steps) == 1:
            other = reverse(first) if first.kind == "forward" else forward(first)
            return self.with_steps(other), (0, None)
        second = self.steps[1]
        if first.kind == "forward":  # the cotangent of one direction, along the other one
            kept, wanted, direction = (first, second, 1) if group == 2 else (second, first, 2)
            return self.with_steps(reverse(wanted), forward(kept)), (0, None, direction)
        if group == 2:  # symmetry: what was the direction is what the result belongs to
            return self.with_steps(reverse(second), forward(first)), (0, 1, None)
        return self.with_steps(second, forward(first)), (0, 2, None)

    @property
    def description(self) -> str:
        """What Julia reads: see `describe.jl`."""
        f = self.function
        rules = [
            f"{key} {name}" for key, name in (("jvp", f.jvp), ("vjp", f.vjp), ("backend", f.backend)) if name
        ]
        lines = [
            *describe(f, self.arguments),
            f"result {self.result}",
            f"narrows {int(self.narrows)}",
            f"steps {';'.join(' '.join([s.kind, *(str(i + 1) for i in s.active)]) for s in self.steps)}",
            f"batch {'-' if self.batch is None else self.batch}",
            f"batched m{''.join(str(int(b)) for b in self.batched or [False] * len(self.operands))}",
            *rules,
        ]
        return "\n".join(lines) + "\n\n" + f.source.code


def forward(step: Step) -> Step:
    return Step("forward", step.active)


def reverse(step: Step) -> Step:
    return Step("reverse", step.active)


def describe(f: Function, arguments: str) -> list[str]:
    return [
        f"name {f.name}",
        f"source {f.source.kind} {f.source.word}",
        f"digest {f.source.digest}",
        f"inplace {int(f.inplace)}",
        f"inputs {f.inputs}",
        f"arguments {arguments}",
    ]
