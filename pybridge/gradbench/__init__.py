"""`pybridge gradbench`: GradBench's evals, answered with pybridge's derivatives."""

from .evals import NAMES
from .protocol import answer, serve
from .tool import Tool

__all__ = ["NAMES", "Tool", "answer", "serve"]
