"""Pickles of Programs: the text, with all derivative rules, the constants and the structure.

Registered rather than a method of Program: it needs the parser and the deferred rules, which know Programs.
"""

from __future__ import annotations

import copyreg
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from .deferred import expanded
from .parser import parse
from .program import Program
from .structure import Structure


def _reduced(program: Program) -> Any:
    whole = expanded(program)
    return _restored, (program.name, whole.text, dict(whole.constants), program.structure)


def _restored(
    name: str, text: str, constants: Mapping[str, np.ndarray], structure: Structure | None
) -> Program:
    return replace(parse(text, constants), name=name, structure=structure)


copyreg.pickle(Program, _reduced)
