"""A comparison as a page."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from .._columns import columns
from .._notes import notes
from .._plot import figure
from ._rendering import page
from ._side_by_side import side_by_side

if TYPE_CHECKING:
    from .._comparison import Comparison

_INK = "#010203"  # stands for the colour of the page's text


def comparison_page(c: Comparison) -> str:
    there = columns(c.reference.second is not None)
    return page(
        "comparison.html",
        f"{c.function}({c.arguments})",
        comparison=c,
        headings=[column.heading for column in there],
        rows=[(row, [column.cell(row).splitlines() for column in there]) for row in c.rows],
        notes=[note.plain for note in notes(c)][: -1 if c.machine else None],
        picture=_picture(c),
        programs=side_by_side(c.problem),
        machine=c.machine,
    )


def _picture(c: Comparison) -> str:
    """As SVG, on no background, in the page's own colour of text."""
    from matplotlib import rc_context

    inks = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
    drawing = io.StringIO()
    with rc_context({"svg.fonttype": "none", **dict.fromkeys(inks, _INK)}):
        figure(c).savefig(drawing, format="svg", transparent=True, metadata={"Date": None})
    svg = drawing.getvalue()
    return svg[svg.index("<svg") :].replace(_INK, "currentColor")
