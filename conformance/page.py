"""The page docs/primitives.md: the prose of page.md in this folder, around the table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import jax

from .exports import PLATFORMS, ROOT
from .notes import APART
from .table import BODY, COLUMNS, Line

PAGE = ROOT / "docs" / "primitives.md"


def text(lines: Sequence[Line], families: dict[str, list[str]]) -> str:
    """The page, of the table's lines and of the families apart."""
    prose = Path(__file__).with_name("page.md").read_text()
    return prose.format(
        version=jax.__version__,
        summary=_summary(lines),
        platforms=", ".join(PLATFORMS),
        table="\n".join(_table(lines)),
        apart="".join(_family(family, names) for family, names in families.items() if names),
    )


def _table(lines: Sequence[Line]) -> list[str]:
    rows = [f"| `{line.name}` | {' | '.join(line.cells)} | {line.note} |" for line in lines]
    return [f"| | {' | '.join(COLUMNS)} | |", "|---" * (len(COLUMNS) + 2) + "|", *rows]


def _summary(lines: Sequence[Line]) -> str:
    traced = [line for line in lines if "trace" not in line.missing]
    missing = {column: sum(column in line.missing for line in traced) for column in COLUMNS[1:-1]}
    exported = sum(line.cells[-1] in ("yes", BODY) for line in traced)
    return (
        f"Of {len(lines)} primitives {len(traced)} are traced. Of these "
        + ", ".join(f"{count} lack {_an(column)}" for column, count in missing.items())
        + f" that could be, and {exported} export for all three platforms."
    )


def _an(column: str) -> str:
    return {"jvp": "a JVP", "transpose": "a transpose"}.get(column, f"a {column}")


def _family(family: str, names: list[str]) -> str:
    return f"- **{family}**: {APART[family][0]}. {', '.join(f'`{name}`' for name in names)}.\n"
