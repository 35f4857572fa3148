"""A comparison as one HTML file: what the terminal shows, and the picture."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from ..api.rendering import recorded
from ._plot import figure

if TYPE_CHECKING:
    from ._comparison import Comparison


def html(comparison: Comparison) -> str:
    page = recorded(comparison).export_html()
    drawing = io.StringIO()
    figure(comparison).savefig(drawing, format="svg")
    svg = drawing.getvalue()
    return page.replace("</body>", f"{svg[svg.index('<svg') :]}\n</body>")
