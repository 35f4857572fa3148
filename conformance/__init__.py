"""docs/primitives.md: what pybridge has of each of JAX's primitives, read off the tables of both.

`lines` makes the table, `text` the page. Both need a checkout: what exports is tried on the tests' cases.
"""

from __future__ import annotations

from .exports import measured_exports
from .page import PAGE, text
from .table import Line, apart, lines

__all__ = ["PAGE", "Line", "apart", "lines", "measured_exports", "text"]
