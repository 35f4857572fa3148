"""Programs with all their rules, for whatever inputs and up to some order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...errors import PyBridgeError
from ..program import Equation, Program
from ..types import TensorType, Var
from .rewriting import Rewriting
from .rules import BatchRule, ClosedOver, Pending, Pullback, Rule, Traced, rule_of

RULE_ORDER = 3
"""Derivatives up to this order use the user's rules; beyond it they go through the functions' own code.

A rule often calls the very function that it differentiates, so that its full expansion is endless; what is
called in `n` rules matters only to derivatives of order n + 1.
"""


def expanded(program: Program, orders: int = RULE_ORDER) -> Program:
    """The Program without names: each rule is traced with all operands perturbed, those in rules likewise.

    A function whose rule raises has the reason in the place of its rule. Rules for batches are left out.
    """
    return replace(_expanded(program, program.rules, orders), rules={}) if program.rules else program


def _expanded(program: Program, rules: Mapping[str, Pending], orders: int) -> Program:
    if rules.keys().isdisjoint(program.rule_names):
        return program
    rewriting = Rewriting(program)
    for eq in program.equations:
        rule = rule_of(eq, rules)
        if isinstance(rule, Pullback):
            body = rule.traced((True,) * len(eq.inputs)).program
            rewriting.replace(eq, _expanded(body, body.rules, orders))
        elif isinstance(rule, BatchRule) or (eq.rule_name is not None and orders == 0):
            rewriting.replace(eq, _expanded(eq.attrs["call"], rules, orders))
        elif isinstance(rule, Rule):
            rewriting.keep(_with_rule(rewriting, eq, rule, rules, orders))
        else:
            rewriting.keep(_with_bodies(eq, rules, orders))
    return rewriting.finish()


def _with_bodies(eq: Equation, rules: Mapping[str, Pending], orders: int) -> Equation:
    return eq.with_bodies(lambda body: _expanded(body, rules, orders))


def _with_rule(
    rewriting: Rewriting, eq: Equation, rule: Rule, rules: Mapping[str, Pending], orders: int
) -> Equation:
    call = _expanded(eq.attrs["call"], rules, orders)
    try:
        traced, closed_over = _traced(rule, [a.type.inexact for a in eq.inputs])
        programs = {name: body.program for name, body in traced.bodies.items()}
        bodies = {name: _expanded(body, body.rules, orders - 1) for name, body in programs.items()}
    except Exception as e:  # whatever the user's code raises
        reason = str(e) if isinstance(e, PyBridgeError) else f"{type(e).__name__}: {e}"
        return replace(eq, op="custom_jvp", attrs={"call": call, "jvp": reason})
    return _guarded(rewriting, replace(eq, attrs={"call": call, **bodies}), closed_over)


def _traced(rule: Rule, mask: list[bool]) -> tuple[Traced, ClosedOver | None]:
    """The rule for these operands, but for those that it is not about."""
    refusal: ClosedOver | None = None
    while True:
        try:
            return rule.traced(tuple(mask)), refusal
        except ClosedOver as e:
            refusal = ClosedOver([*(refusal.operands if refusal else ()), *e.operands])
            mask = [m and k not in refusal.operands for k, m in enumerate(mask)]


def _guarded(rewriting: Rewriting, eq: Equation, closed_over: ClosedOver | None) -> Equation:
    """The equation with the operands that its rule is not about once more in front, for nothing but to
    refuse derivatives by them: an identity without a rule gives these."""
    if closed_over is None:
        return eq
    guards = []
    for k in closed_over.operands:
        type_ = eq.inputs[k].type
        x, y = Var(0, type_), rewriting.variable(type_)
        attrs = {"call": Program("", (x,), (), (x,)), "jvp": str(closed_over)}
        rewriting.keep(Equation("custom_jvp", (eq.inputs[k],), (y,), attrs, eq.source))
        guards.append(y)
    types = [y.type for y in guards]
    bodies = {name: _with_operands(eq.attrs[name], types) for name in ("call", "fwd")}
    return replace(
        eq, inputs=(*guards, *eq.inputs), attrs={**bodies, "bwd": _with_zeros(eq.attrs["bwd"], types)}
    )


def _with_operands(body: Program, types: Sequence[TensorType]) -> Program:
    """The body with operands in front that it does not read."""
    rewriting = Rewriting(body)
    return replace(body, inputs=(*map(rewriting.variable, types), *body.inputs))


def _with_zeros(body: Program, types: Sequence[TensorType]) -> Program:
    """The body with zeros in front of its results."""
    rewriting = Rewriting(body)
    for eq in body.equations:
        rewriting.keep(eq)
    return rewriting.finish(before=[rewriting.zeros(t) for t in types])
