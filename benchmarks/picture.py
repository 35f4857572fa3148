"""Results as a picture: how many times as fast as its rival pybridge is, with what is required marked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from .report import Line, lines
from .results import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS = {True: "tab:green", False: "tab:red", None: "tab:gray"}


def save(results: Results, path: Path) -> None:
    """Made without pyplot, so that no display and no global state is touched."""
    counts = sorted({row.threads for row in results.rows})
    by_count = [[line for line in lines(results) if line.row.threads == n] for n in counts]
    height = 1.2 + 0.24 * max(map(len, by_count), default=1)
    figure = Figure(figsize=(5 + 4.5 * len(counts), height), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(1, len(counts), sharey=True, squeeze=False)[0]
    for ax, count, shown in zip(axes, counts, by_count, strict=True):
        _bars(ax, shown)
        ax.set_title(f"{count} thread{'s' if count > 1 else ''}")
        ax.set_xlabel("times as fast as the rival; the black mark is required")
    axes[0].set_yticks(range(len(by_count[0])), [f"{line.row.case}  vs {line.rival}" for line in by_count[0]])
    axes[0].invert_yaxis()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def _bars(ax: Axes, shown: list[Line]) -> None:
    places = [i for i, line in enumerate(shown) if line.ratio]
    ratios = [shown[i].ratio for i in places]
    ax.barh(places, [r - 1 for r in ratios], left=1, color=[_COLOURS[shown[i].met] for i in places])
    ax.set_xscale("log")
    for i, line in enumerate(shown):
        if line.required is not None:
            ax.plot([line.required] * 2, [i - 0.42, i + 0.42], color="black", linewidth=2)
    ax.axvline(1, color="black", linewidth=0.8)
    ax.grid(axis="x", alpha=0.3)
