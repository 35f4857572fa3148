"""What reports share: they print as the table that their `__rich__` gives, and are written to files."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any


class Shown:
    """A report as text, and in a notebook."""

    def __str__(self) -> str:
        from ..api.rendering import plain

        return plain(self)

    def _repr_html_(self) -> str:
        from ..api.rendering import notebook

        return notebook(self)


class Saved(Shown):
    """One that is also written to files."""

    function: str
    arguments: str

    def to_json(self) -> str:
        raise NotImplementedError

    def save_json(self, path: str | Path) -> None:
        Path(path).write_text(self.to_json() + "\n", encoding="utf-8")

    def to_html(self, path: str | Path) -> None:
        """One file, which refers to nothing else."""
        from ..api.rendering import spans
        from ._machine import machine
        from ._page._rendering import terminal_page

        title = f"{self.function}({self.arguments})"
        Path(path).write_text(terminal_page(title, spans(self), machine()), encoding="utf-8")


def finite(value: Any) -> Any:
    """The same for JSON, with NaN and infinities as the strings "nan", "inf" and "-inf"."""
    match value:
        case float() if not math.isfinite(value):
            return str(value)
        case dict():
            return {key: finite(v) for key, v in value.items()}
        case list() | tuple():
            return [finite(v) for v in value]
    return value
