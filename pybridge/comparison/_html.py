"""A comparison as one HTML file: what the terminal shows, and the picture."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from rich.console import Console

from ._plot import figure

if TYPE_CHECKING:
    from ._comparison import Comparison

_WIDTH = 118


def html(comparison: Comparison) -> str:
    console = Console(record=True, file=io.StringIO(), width=_WIDTH, force_terminal=True)
    console.print(comparison.table())
    page = console.export_html()
    drawing = io.StringIO()
    figure(comparison).savefig(drawing, format="svg")
    svg = drawing.getvalue()
    return page.replace("</body>", f"{svg[svg.index('<svg') :]}\n</body>")
