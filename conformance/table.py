"""The table itself, from JAX's registries, pybridge's table of primitives and JaxprAD's rules."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from pybridge.frontend.adapter import registry
from pybridge.frontend.primitives import DECOMPOSITIONS, LOWERINGS
from pybridge.runtime.rule_table import Rules

from .exports import PLATFORMS
from .notes import APART, BODIES, REWRITTEN, WHY

NO, BODY, NOT_LINEAR = "no", "as the body", "·"


@dataclass(frozen=True)
class Line:
    """A primitive of JAX; in `cells` what there is of it, in the order of `COLUMNS`."""

    name: str
    cells: tuple[str, ...]
    note: str

    @property
    def missing(self) -> list[str]:
        """The columns in which there is nothing though there could be."""
        return [column for column, cell in zip(COLUMNS, self.cells, strict=True) if cell == NO]


COLUMNS = ("trace", "jvp", "transpose", "native kernel", "export")


def lines(rules: Mapping[str, Rules], exports: Mapping[str, Mapping[str, str]]) -> list[Line]:
    """A line for each primitive of JAX that is not of a family apart.

    exports: for each operation of Programs the platforms for which it does not export, with the reason.
    """
    jax_primitives = registry.primitives()
    found = [
        _line(name, theirs, rules, exports)
        for name, theirs in sorted(jax_primitives.items())
        if _known(name) or _family(name) is None
    ]
    unused = WHY.keys() & jax_primitives.keys() - {line.name for line in found if line.missing}
    if unused:
        raise ValueError(f"nothing is missing of {', '.join(sorted(unused))}: notes.py says why there is")
    return found


def apart() -> dict[str, list[str]]:
    """The primitives of the families apart, by family."""
    families: dict[str, list[str]] = {family: [] for family in APART}
    for name in sorted(registry.primitives()):
        family = _family(name)
        if family is not None and not _known(name):
            families[family].append(name)
    return families


def _known(name: str) -> bool:
    return name in LOWERINGS or name in DECOMPOSITIONS


def _family(name: str) -> str | None:
    return next((family for family, (_, names) in APART.items() if re.fullmatch(names, name)), None)


def _line(name: str, theirs: registry.JaxRules, rules, exports) -> Line:
    if not _known(name):
        return _explained(name, (NO, *(NO if has else NOT_LINEAR for has in theirs), NO, NO), "")
    if name in BODIES:
        return Line(name, ("inlined", *[BODY] * 4), "")
    parts = REWRITTEN[name].split() if name in REWRITTEN else [LOWERINGS[name].op]
    return _explained(name, _cells(name, parts, theirs, rules, exports), _note(name, parts, rules, exports))


def _explained(name: str, cells: tuple[str, ...], note: str) -> Line:
    line = Line(name, cells, note)
    if not line.missing:
        return line
    if name not in WHY and not note:
        raise ValueError(f"{name} lacks {', '.join(line.missing)}: notes.py does not say why")
    return Line(name, cells, "; ".join(filter(None, (WHY.get(name), note))))


def _cells(name: str, parts: list[str], theirs: registry.JaxRules, rules, exports) -> tuple[str, ...]:
    ours = [rules[op] for op in parts]
    trace = "rewritten" if name in REWRITTEN else "yes"
    refused = [p for p in PLATFORMS if any(p in exports.get(op, {}) for op in parts)]
    native = {has.native for has in ours}
    return (
        trace,
        _jvp(ours, theirs),
        _transpose(ours, theirs),
        NO if "none" in native else " and ".join(sorted(native)) or "nothing to do",
        "yes" if not refused else NO if len(refused) == len(PLATFORMS) else f"not for {', '.join(refused)}",
    )


def _jvp(ours: list[Rules], theirs: registry.JaxRules) -> str:
    if ours and all(has.zero for has in ours):
        return "zero"
    if all(has.jvp or has.zero for has in ours):
        return "yes"
    return NO if theirs.jvp else "none in JAX"


def _transpose(ours: list[Rules], theirs: registry.JaxRules) -> str:
    if all(has.transpose or has.zero for has in ours) and not (ours and all(has.zero for has in ours)):
        return "yes"
    return NO if theirs.transpose else NOT_LINEAR


def _note(name: str, parts: list[str], rules, exports) -> str:
    notes = []
    if name in REWRITTEN:
        notes.append(" ".join(f"`{op}`" for op in parts) or "the value itself")
    elif parts != [name]:
        notes.append(f"`{parts[0]}`")
    for op in parts:
        if rules[op].lacking and rules[op].jvp:
            operands = " and ".join(str(k + 1) for k in rules[op].lacking)
            notes.append(f"no derivative by operand {operands}, in JAX neither")
        notes += exports.get(op, {}).values()
    return "; ".join(notes)
