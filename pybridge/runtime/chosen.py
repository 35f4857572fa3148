"""Inputs and results of a Program that a transform is told of, by index or name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from .. import errors
from ..ir.program import Program
from ..ir.types import TensorType

Mask = tuple[bool, ...]

Chosen = int | str | Iterable[int | str] | None
"""Inputs by index, `%0` being 0, or by name: all of an argument's, `params`, or a part's, `params['w']`."""


def active_inputs(program: Program, active: Chosen) -> Mask:
    """The inexact ones by default. Raises NotDifferentiable for one that is not, ArgumentError for none."""
    if active is None:
        return tuple(type_.inexact for type_ in program.input_types)
    return mask_of(program, active, "input")


def mask_of(program: Program, chosen: Chosen, what: str) -> Mask:
    """Which inputs or results are chosen, as `what` says; of a name those that have derivatives."""
    types = program.input_types if what == "input" else program.output_types
    if chosen is None:
        return (True,) * len(types)
    found: set[int] = set()
    for one in [chosen] if isinstance(chosen, int | str) else chosen:
        found.update(
            _named(program, one, what, types) if isinstance(one, str) else _at(program, one, what, types)
        )
    return tuple(i in found for i in range(len(types)))


def _at(program: Program, index: int, what: str, types: Sequence[TensorType]) -> list[int]:
    if not 0 <= index < len(types):
        raise errors.ArgumentError(f"{program.name} has no {what} {index}; it has {len(types)}")
    if not types[index].inexact and what == "input":
        raise _no_derivative(f"input {index} of {program.name} has type {types[index]}")
    return [index]


def _named(program: Program, name: str, what: str, types: Sequence[TensorType]) -> list[int]:
    labels = program.input_names if what == "input" else program.output_names
    if labels is None:
        raise errors.ArgumentError(
            f"the {what}s of {program.name} have no names, since no function was traced: give indices"
        )
    places = [i for i, label in enumerate(labels) if _leads(name, label)]
    if not places:
        raise errors.ArgumentError(f"{program.name} has no {what} {name!r}; {_there_are(labels, name)}")
    inexact = [i for i in places if types[i].inexact]
    if not inexact:
        found = ", ".join(dict.fromkeys(str(types[i]) for i in places))
        raise _no_derivative(f"{name} of {program.name} has type {found}")
    return inexact


def _leads(name: str, label: str) -> bool:
    """Whether it is the name of what the label names, or of something that this is in."""
    return label.startswith(name) and (len(label) == len(name) or label[len(name)] in "[.")


def _there_are(labels: Sequence[str], name: str) -> str:
    """The names there are: of what is in an argument, where one of that argument is asked for."""
    roots = list(dict.fromkeys(re.split(r"[\[.]", label)[0] for label in labels))
    root = re.split(r"[\[.]", name)[0]
    names = [label for label in labels if _leads(root, label)] if root in roots else roots
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"it has {', '.join(names[:_SHOWN])}{more}" if names else "it has none"


_SHOWN = 20


def _no_derivative(what: str) -> errors.NotDifferentiable:
    return errors.NotDifferentiable(
        f"{what}; only float and complex inputs have derivatives. Convert it to a float, or leave it out of "
        "`active`."
    )
