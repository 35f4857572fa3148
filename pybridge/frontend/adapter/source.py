"""The user's source lines."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from jax.extend import source_info_util

from . import internals

# Frames of pybridge itself are never the user's line.
source_info_util.register_exclusion(str(Path(__file__).parents[2]) + os.sep)


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
