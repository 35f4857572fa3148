"""The user's source lines."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any

from . import internals
from .extend import register_exclusion

# Frames of pybridge itself are never the user's line.
register_exclusion(str(Path(__file__).parents[2]) + os.sep)


def is_user_file(path: str) -> bool:
    """Whether a frame in this file is the user's, not JAX's, pybridge's or the standard library's."""
    return internals.is_user_filename(path)


def line_of(eqn: Any) -> str:
    """`file.py:12 (function)` of the innermost user frame of an equation, or an empty string."""
    frame = internals.user_frame(eqn.source_info.traceback)
    return describe_frame(frame.file_name, frame.start_line, frame.function_name) if frame else ""


def describe_frame(path: str, line: int, function: str) -> str:
    """The form in which source positions are shown; paths inside the working directory are relative to it."""
    here = os.getcwd() + os.sep
    return f"{path.removeprefix(here)}:{line} ({function})"


def run_at(source: str, work: Callable[[], Any]) -> Any:
    """`work()`, whose operations JAX takes to be of that line, `model.jl:12 (step)`, in any language."""
    return _frame(source)(work)


@functools.lru_cache(maxsize=16384)
def _frame(source: str) -> Callable[[Callable[[], Any]], Any]:
    """A function that calls its argument, in a frame of the stack that has this file, line and name."""
    found = re.fullmatch(r"(.*):(\d+)(?: \((.*)\))?", source)
    if found is None:
        return _call
    file, line, name = found[1], int(found[2]), found[3] or "<anonymous>"
    # fmt: off
    code = (lambda work: work()).__code__  # on one line: the first is that of the call
    # fmt: on
    return FunctionType(
        code.replace(co_filename=file, co_firstlineno=line, co_name=name, co_qualname=name), {}, name
    )


def _call(work: Callable[[], Any]) -> Any:
    return work()
