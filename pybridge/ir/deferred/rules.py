"""What waits, and the names that stand in its place."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from ...errors import NotDifferentiable, PyBridgeError, SideEffectError, TracingError, UnsupportedPrimitive
from ..program import Equation, Program

Mask = tuple[bool, ...]
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Pending:
    """A function of a mask that traces the user's code, at most once for each mask.

    What it raises is the user's.
    """

    trace: Callable[[Mask], Any]
    found: dict[Mask, Any] = field(default_factory=dict, repr=False)

    def traced(self, mask: Mask) -> Any:
        if mask not in self.found:
            try:
                self.found[mask] = self.trace(mask)
            except Exception as e:
                vars(e)[_OF_A_RULE] = True
                raise
        return self.found[mask]


_OF_A_RULE = "raised by a derivative rule"


def is_of_a_rule(error: Exception) -> bool:
    """Whether it was raised while a rule was traced, which makes it the user's own."""
    return _OF_A_RULE in vars(error)


class NoProgram(PyBridgeError):
    """A derivative that only JAX can make: a rule does what Programs lack."""


class ClosedOver(NotDifferentiable):
    """operands: those of a custom_vjp equation that are no arguments of the user's function."""

    def __init__(self, operands: Sequence[int]):
        super().__init__(
            "differentiation of a custom_vjp function with respect to a value that it closes over: its rule "
            "is for the function's arguments alone. Pass the value as one, with a cotangent from the rule"
        )
        self.operands = tuple(operands)


@dataclass(frozen=True, eq=False)
class Body:
    """What was traced of a rule.

    run: as a function of JAX. lowered: as a Program, with rules of its own; raises what Programs lack.
    """

    run: Callable[..., Sequence[Any]]
    lowered: Callable[[], Program]

    @functools.cached_property
    def program(self) -> Program:
        """Raises NoProgram where Programs lack something."""
        try:
            return self.lowered()
        except (UnsupportedPrimitive, SideEffectError, TracingError) as e:
            raise NoProgram(str(e)) from e

    def mapped(self, change: Callable[[Program], Program]) -> Body:
        return Body(self.run, lambda: change(self.lowered()))


@dataclass(frozen=True, eq=False)
class Traced:
    """A rule for some operands.

    bodies: what the equation has in the place of the name, `jvp` or `fwd` and `bwd`. As everywhere, they
        take tangents of, and give cotangents for, all inexact operands; those of the others are not read,
        or zero.
    active: which of the equation's results have tangents.
    """

    bodies: Mapping[str, Body]
    active: Mask


@dataclass(frozen=True, eq=False)
class Rule(Pending):
    """The rule of a `custom_jvp` or `custom_vjp` equation: which operands are perturbed -> Traced."""

    def mapped(self, change: Callable[[Program], Program]) -> Rule:
        """The rule with `change` applied to all that is traced."""

        def trace(mask: Mask) -> Traced:
            traced = self.traced(mask)
            return replace(traced, bodies={name: body.mapped(change) for name, body in traced.bodies.items()})

        return replace(self, trace=trace, found={})


@dataclass(frozen=True, eq=False)
class BatchRule(Rule):
    """Of a `custom_jvp` equation that has the derivative of its code, and a rule of the user's for batches.

    bind: the call in JAX, which batches it by that rule.
    """

    bind: Callable[..., Sequence[Any]] = field(kw_only=True)


@dataclass(frozen=True, eq=False)
class Pullback(Pending):
    """What a `custom_jvp` equation in the body `bwd` stands for, as if it were its rule: which of its
    operands are not zero -> the Body of the user's backward rule."""

    def mapped(self, change: Callable[[Program], Program]) -> Pullback:
        return Pullback(lambda mask: self.traced(mask).mapped(change))


def rule_of(eq: Equation, rules: Mapping[str, Pending]) -> Pending | None:
    """What has its name in the place of the equation's rule, if anything has."""
    return None if eq.rule_name is None else rules.get(eq.rule_name)


class Names:
    """Rules by names that count up, so that Programs of the same functions have the same text."""

    def __init__(self, rules: Mapping[str, Pending] | None = None):
        self.rules: dict[str, Pending] = dict(rules or {})
        self.count = max((int(name.removeprefix(_PREFIX)) for name in self.rules), default=0)

    def add(self, rule: Pending) -> str:
        self.count += 1
        name = f"{_PREFIX}{self.count}"
        self.rules[name] = rule
        return name

    def adopted(self, program: Program) -> Program:
        """A Program with rules of its own as one whose rules are among these."""
        return renamed(program, {name: self.add(rule) for name, rule in program.rules.items()})


_PREFIX = "rule_"


def renamed(program: Program, names: Mapping[str, str]) -> Program:
    """The Program, nested ones included, with other names for its rules; it has none of them itself."""
    if names.keys().isdisjoint(program.rule_names):
        return program

    def equation(eq: Equation) -> Equation:
        eq = eq.with_bodies(lambda body: renamed(body, names))
        old = eq.rule_name
        if old is None or old not in names:
            return eq
        return replace(eq, attrs={k: names[old] if v == old else v for k, v in eq.attrs.items()})

    return replace(program, equations=tuple(map(equation, program.equations)), rules={})


def remembered(maxsize: int) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Caches a function of a Program and hashable arguments.

    By the Program's content, unless rules wait in it: content does not tell them apart, and what is made of
    such a Program is kept as long as the Program is.
    """

    def decorate(f: Callable[..., T]) -> Callable[..., T]:
        by_content = functools.lru_cache(maxsize)(f)

        @functools.wraps(f)
        def call(program: Program, *args: Any) -> T:
            if not program.rules:
                return by_content(program, *args)
            key = (f, *args)
            if key not in program.made:
                program.made[key] = f(program, *args)
            return program.made[key]

        return call

    return decorate
