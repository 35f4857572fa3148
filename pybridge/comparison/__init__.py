"""Comparing derivative engines: `compare(f, *args)` gives one `Comparison`, a row for each engine.

`check(f, *args)` holds a function's own derivative against its value; `blame(f, *args)` says where numbers go
wrong; `mixed(f, error=...)(*args)` has in 32 bits what need not be in 64.
"""

from ._blame import Blame, blame
from ._case import reproduce
from ._case_file import array, case_text
from ._check import check
from ._check_report import Check, Finding
from ._compare import compare
from ._comparison import Comparison
from ._counting import count_equations
from ._disagreement import Disagreement
from ._mixed import Kept, Mixed, Precision, mixed
from ._plot import picture_format
from ._rows import Error, Reference, Row, Taylor, Times

__all__ = [
    "Blame",
    "Check",
    "Comparison",
    "Disagreement",
    "Error",
    "Finding",
    "Kept",
    "Mixed",
    "Precision",
    "Reference",
    "Row",
    "Taylor",
    "Times",
    "array",
    "blame",
    "case_text",
    "check",
    "compare",
    "count_equations",
    "mixed",
    "picture_format",
    "reproduce",
]
