"""What becomes of rules in a Program that Julia has made, and in one that runs."""

from __future__ import annotations

from dataclasses import replace

from ..program import Program
from ..types import Atom
from ..zeros import gives_zeros, is_zero
from .rewriting import Rewriting
from .rules import Mask, Names, Pullback, remembered, rule_of

CUSTOM = ("custom_jvp", "custom_vjp")
RULES = ("jvp", "fwd", "bwd")


def settled(program: Program) -> Program:
    """A derivative as Julia has made it, with its rules, ready for the next.

    Equations that still have the rule of some activation have a name again. Backward rules are traced, for
    the cotangents that are not zero, where they are applied: not yet in the body of a `custom_vjp_tangent`.

    Raises whatever these rules raise, and NoProgram where Programs lack what they do.
    """
    if not program.rules:
        return program
    names = Names(program.rules)
    return replace(_settled(program, names), rules=names.rules)


def _settled(program: Program, names: Names) -> Program:
    if names.rules.keys().isdisjoint(program.rule_names):
        return program
    rewriting = Rewriting(program)
    zeros: set[Atom] = set()
    for eq in program.equations:
        if gives_zeros(eq, zeros):
            zeros.update(eq.outputs)
        rule = rule_of(eq, names.rules)
        if isinstance(rule, Pullback):
            given: Mask = tuple(not is_zero(rewriting.read(a), zeros) for a in eq.inputs)
            rewriting.replace(eq, names.adopted(rule.traced(given).program))
        elif eq.op in CUSTOM and eq.rule_name is None and eq.attrs["call"].rule_names:
            rewriting.replace(eq, eq.attrs["call"])
        else:
            rewriting.keep(eq.with_bodies(lambda body: _settled(body, names), but=RULES))
    return rewriting.finish()


def values(program: Program) -> Program:
    """The Program with the code of the user's functions in the place of their calls, and no rules."""
    return _bare_values(program) if program.rules else program


@remembered(maxsize=1)
def _bare_values(program: Program) -> Program:
    return _values(program).bare


def _values(program: Program) -> Program:
    if not program.rule_names:
        return program
    rewriting = Rewriting(program)
    for eq in program.equations:
        if eq.op in CUSTOM:
            rewriting.replace(eq, _values(eq.attrs["call"]))
        else:
            rewriting.keep(eq.with_bodies(_values, but=RULES))
    return rewriting.finish()
