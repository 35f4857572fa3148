"""Texts of Programs that people wrote: read here, and their types checked in Julia."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..ir import parser
from ..ir.program import Program
from .requests import ask_about_text


def parse(text: str, constants: Mapping[str, np.ndarray] | None = None) -> Program:
    """The one Program in `text`; `constants` holds the arrays that it refers to and that are not in the text.

    Raises ProgramSyntaxError for what is not the text of exactly one Program, ProgramVersionError for text of
    a newer version, ProgramTypeError for an ill-typed Program; their messages name line and column. Types are
    checked by Julia's rules, so the first text of its kind waits for Julia to start.
    """
    program = parser.parse(text, constants)
    ask_about_text("check", parser.without_data(text))
    return program
