"""Comparing derivative engines: `compare(f, *args)` gives one `Comparison`, a row for each engine."""

from ._compare import compare
from ._comparison import Comparison
from ._counting import count_equations
from ._locate import Disagreement
from ._rows import Error, Reference, Row, Taylor, Times

__all__ = [
    "Comparison",
    "Disagreement",
    "Error",
    "Reference",
    "Row",
    "Taylor",
    "Times",
    "compare",
    "count_equations",
]
