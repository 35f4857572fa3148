"""A comparison as a picture: errors on a logarithmic scale, and times."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import UnknownOption
from ._rows import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ._comparison import Comparison

_SMALLEST = 1e-18  # an error of zero is drawn here


def picture_format(path: str | Path) -> str:
    """What matplotlib calls the format of a file by its suffix. Raises UnknownOption where it has none."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # most of the import time of comparisons

    known = FigureCanvasAgg.get_supported_filetypes()
    suffix = Path(path).suffix.removeprefix(".").lower()
    if suffix not in known:
        raise UnknownOption(f"{path} names no format of pictures by its suffix; there are {', '.join(known)}")
    return suffix


def figure(comparison: Comparison) -> Figure:
    """Made without pyplot, so that no display and no global state is touched."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    rows = [row for row in comparison.rows if row.ran]
    result = Figure(figsize=(10, 3.6), layout="constrained")
    FigureCanvasAgg(result)
    errors, times = result.subplots(1, 2)
    stages = ["value", "JVP", "VJP", *(["HVP"] if comparison.reference.second else [])]
    _bars(errors, rows, {name: [_relative(row, name) for row in rows] for name in stages})
    errors.axhline(comparison.epsilon, color="grey", linestyle="--", linewidth=1, label="unit roundoff")
    errors.set(yscale="log", ylabel="largest relative error", title="errors against float64")
    _legend(errors)
    _bars(times, rows, _times(rows))
    times.set(yscale="log", ylabel="seconds", title="times")
    _legend(times)
    result.suptitle(f"{comparison.function}({comparison.arguments})")
    absent = [row.engine for row in comparison.rows if not row.ran]
    if absent:
        result.supxlabel(f"no numbers from {', '.join(absent)}", fontsize="small")
    return result


def _bars(axes: Axes, rows: list[Row], groups: dict[str, list[float | None]]) -> None:
    width = 0.8 / len(groups)
    for n, (name, heights) in enumerate(groups.items()):
        places = [i + (n - (len(groups) - 1) / 2) * width for i, h in enumerate(heights) if h is not None]
        axes.bar(places, [h for h in heights if h is not None], width, label=name)
    axes.set_xticks(range(len(rows)), [row.engine for row in rows])


def _legend(axes: Axes) -> None:
    """Under the axes, where it hides nothing."""
    axes.legend(
        fontsize="small",
        loc="upper center",
        bbox_to_anchor=(0.5, -0.1),
        ncols=5,
        frameon=False,
        columnspacing=1,
    )


def _relative(row: Row, stage: str) -> float | None:
    if stage == "HVP":
        found = [e.relative for e in row.second.errors.values()] if row.second else []
        return max([_SMALLEST, *found]) if found else None
    error = {"value": row.value, "JVP": row.jvp, "VJP": row.vjp}[stage]
    return None if error is None else max(error.relative, _SMALLEST)


def _times(rows: list[Row]) -> dict[str, list[float | None]]:
    return {
        "value": [row.times.value if row.times else None for row in rows],
        "VJP": [row.times.vjp if row.times else None for row in rows],
        "first gradient": [row.first_gradient for row in rows],
    }
