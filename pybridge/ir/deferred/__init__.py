"""Derivative rules that wait until one knows for which operands they are needed.

What a user's rule does may depend on which operands are perturbed, and it may refuse some of them. So a
Program is made without rules: an equation `custom_jvp` or `custom_vjp` has a name in the place of its rule,
and `Program.rules` has, by that name, the function that traces it. For a derivative with respect to some of
the inputs,

- `activated` finds the operands that have tangents, and gives these equations the rule for them;
- Julia makes the derivative, in which rules that were not needed are still names, for the next order;
- `settled` traces backward rules where transposition has placed them, for the cotangents that are not zero.

`values` leaves the functions' own code, which is all that a Program needs to run, and `expanded` traces all
rules for all operands, up to an order, for Programs that are read, written to files and parsed.

A user's rule for batches is carried likewise: by the name of a `BatchRule`, until the Program is batched.
"""

from .activity import activated
from .expansion import RULE_ORDER, expanded
from .rules import (
    BatchRule,
    Body,
    ClosedOver,
    Names,
    NoProgram,
    Pending,
    Pullback,
    Rule,
    Traced,
    is_of_a_rule,
    remembered,
    renamed,
    rule_of,
)
from .settling import settled, values

__all__ = [
    "RULE_ORDER",
    "BatchRule",
    "Body",
    "ClosedOver",
    "Names",
    "NoProgram",
    "Pending",
    "Pullback",
    "Rule",
    "Traced",
    "activated",
    "expanded",
    "is_of_a_rule",
    "remembered",
    "renamed",
    "rule_of",
    "settled",
    "values",
]
