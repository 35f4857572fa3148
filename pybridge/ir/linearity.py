"""Which results of a Program are linear in some of its inputs.

What is not known to be linear counts as if it were not: rounding, comparisons, maxima, sums with terms that
do not depend on those inputs.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence

from .program import Equation, Program
from .types import Atom, Literal
from .zeros import gives_zeros

NARROW = frozenset({"f16", "bf16"})
"""The dtypes of which a conversion to and from rounds so much that it is no linear function."""


class Dependence(enum.IntEnum):
    """How a value depends on the inputs in question. A sum is as its greatest term, but see `_joined`."""

    ZERO = 0
    FIXED = 1
    LINEAR = 2
    OTHER = 3


ZERO, FIXED, LINEAR, OTHER = Dependence
Dependences = list[Dependence]


def is_linear(program: Program, linear: Sequence[bool]) -> bool:
    """Whether all results are linear in the inputs marked `linear`, jointly; zeros are."""
    given = [LINEAR if flag else FIXED for flag in linear]
    return all(d in (ZERO, LINEAR) for d in _results(program, given))


def _results(program: Program, given: Sequence[Dependence]) -> Dependences:
    found: dict[Atom, Dependence] = dict(zip(program.inputs, given, strict=True))
    zeros: set[Atom] = {v for v, d in found.items() if d is ZERO}

    def read(atom: Atom) -> Dependence:
        if isinstance(atom, Literal):
            return ZERO if atom.value == 0 else FIXED
        return found[atom]

    for eq in program.equations:
        results = (
            [ZERO] * len(eq.outputs) if gives_zeros(eq, zeros) else _applied(eq, list(map(read, eq.inputs)))
        )
        found.update(zip(eq.outputs, results, strict=True))
        zeros.update(v for v, d in zip(eq.outputs, results, strict=True) if d is ZERO)
    return list(map(read, program.outputs))


def _applied(eq: Equation, given: Dependences) -> Dependences:
    rule = _RULES.get(eq.op)
    if all(d in (ZERO, FIXED) for d in given) and (rule is None or ZERO not in given):
        return [FIXED] * len(eq.outputs)
    if rule is None or OTHER in given:
        return [OTHER] * len(eq.outputs)
    return rule(eq, given)


def _joined(given: Sequence[Dependence]) -> Dependence:
    """Of a sum, or of an array of both: a linear term and a fixed one are not linear together."""
    most = max(given, default=ZERO)
    return OTHER if most is LINEAR and FIXED in given else most


def _sum(eq: Equation, given: Dependences) -> Dependences:
    return [_joined(given)] * len(eq.outputs)


def _product(eq: Equation, given: Dependences) -> Dependences:
    return [OTHER if given.count(LINEAR) > 1 else ZERO if ZERO in given else max(given)] * len(eq.outputs)


def _operands(*places: int) -> Callable[[Equation, Dependences], Dependences]:
    """Linear in the operands at these places, jointly; the others are fixed."""

    def rule(eq: Equation, given: Dependences) -> Dependences:
        rest = [d for i, d in enumerate(given) if i not in places]
        return [OTHER if LINEAR in rest else _joined([given[i] for i in places])] * len(eq.outputs)

    return rule


def _gather(eq: Equation, given: Dependences) -> Dependences:
    filled = eq.attrs["fill_value"] not in (None, "none", 0)
    return [OTHER if filled or given[1] is LINEAR else given[0]]


def _solve(eq: Equation, given: Dependences) -> Dependences:
    """Linear in the right-hand sides by definition."""
    closed_over = sum(eq.attrs["consts"])
    known, right = given[:closed_over], given[closed_over:]
    return [OTHER if LINEAR in known else _joined(right)] * len(eq.outputs)


def _select(eq: Equation, given: Dependences) -> Dependences:
    return [OTHER if given[0] is LINEAR else _joined(given[1:])]


def _convert(eq: Equation, given: Dependences) -> Dependences:
    types = (eq.inputs[0].type, eq.outputs[0].type)
    return given if all(t.inexact and t.dtype not in NARROW for t in types) else [OTHER]


# Equations with bodies


def _cond(eq: Equation, given: Dependences) -> Dependences:
    if given[0] is LINEAR:
        return [OTHER] * len(eq.outputs)
    found = [_results(branch, given[1:]) for branch in eq.attrs["branches"]]
    return [_joined(results) for results in zip(*found, strict=True)]


def _body(name: str) -> Callable[[Equation, Dependences], Dependences]:
    return lambda eq, given: _results(eq.attrs[name], given)


def _settled(body: Program, given: Dependences, carry: slice) -> Dependences:
    """The results of a loop's body, for operands of which those carried are as after any number of trips."""
    while True:
        results = _results(body, given)
        after = results[: carry.stop - carry.start]
        carried = [_joined(pair) for pair in zip(given[carry], after, strict=True)]
        if carried == given[carry]:
            return [*carried, *results[len(carried) :]]
        given = [*given[: carry.start], *carried, *given[carry.stop :]]


def _scan(eq: Equation, given: Dependences) -> Dependences:
    consts = eq.attrs["consts"]
    return _settled(eq.attrs["body"], given, slice(consts, consts + eq.attrs["carry"]))


def _while(eq: Equation, given: Dependences) -> Dependences:
    of_cond, consts = eq.attrs["cond_consts"], eq.attrs["body_consts"]
    operands = given[of_cond:]
    results = _settled(eq.attrs["body"], operands, slice(consts, len(operands)))
    (asked,) = _results(eq.attrs["cond"], [*given[:of_cond], *results])
    return results if asked in (ZERO, FIXED) else [OTHER] * len(results)


_LINEAR_IN_ALL = (
    "add sub neg copy real imag conj complex broadcast_in_dim reshape squeeze transpose rev concatenate pad "
    "slice split optimization_barrier reduce_sum cumsum fft reduce_window_sum saveable"
)

_RULES: dict[str, Callable[[Equation, Dependences], Dependences]] = {
    **dict.fromkeys(_LINEAR_IN_ALL.split(), _sum),
    **dict.fromkeys(("mul", "dot_general", "conv_general_dilated"), _product),
    **dict.fromkeys(("div", "dynamic_slice"), _operands(0)),
    "gather": _gather,
    "triangular_solve": _operands(1),
    "custom_linear_solve": _solve,
    "dynamic_update_slice": _operands(0, 1),
    **dict.fromkeys(("scatter", "scatter_add", "scatter_sub"), _operands(0, 2)),
    "select_n": _select,
    "convert_element_type": _convert,
    "cond": _cond,
    "remat": _body("body"),
    **dict.fromkeys(("custom_jvp", "custom_vjp"), _body("call")),
    "scan": _scan,
    "while": _while,
}
