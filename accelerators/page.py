"""The part of docs/accelerators.md that says what ran on a device."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from benchmarks.markdown import between, table
from pybridge.quantities import seconds

from .run import AGREES, CASE, DIFFERS, FAILS, LIKE_JAX, OURS, ROW, THEIRS

_HEAD = ("benchmark", "pybridge", "JAX", "times as fast", "errors")


def write(page: Path, results: Path) -> None:
    """Puts what was found between the page's marks."""
    found = text(json.loads(results.read_text(encoding="utf-8")))
    page.write_text(between(page.read_text(encoding="utf-8"), "accelerators", found), encoding="utf-8")


def text(found: dict[str, Any]) -> str:
    machine, entries = found["machine"], found["entries"]
    cases, rows = ([e for e in entries if e["kind"] == kind] for kind in (CASE, ROW))
    where = f"{machine['date']}, {machine['device']}, JAX {machine['jax']}"
    return (
        f"{where}; exported by JAX {found['exported_by_jax']}.\n\n"
        f"- {_agreement(cases, 'cases')}: values, JVPs and VJPs, in float64, against JAX's on the CPU.\n"
        f"- {_agreement(rows, 'benchmarks')}: gradients, against JAX's in float64 on the CPU.\n"
        f"{_others(entries)}{_refusals(found['refused'])}\n"
        f"{_table([e for e in rows if 'seconds' in e])}"
    )


def _agreement(entries: list[dict[str, Any]], what: str) -> str:
    good = [e for e in entries if e["verdict"] == AGREES]
    worst = max((e["errors"][OURS] for e in good), default=0.0)
    return f"{len(good)} of {len(entries)} {what} agree, to {worst:.0e}"


def _others(entries: list[dict[str, Any]]) -> str:
    """What does not agree, and whether JAX's own export does."""
    alike = ", ".join(f"`{e['name']}`" for e in entries if e["verdict"] == LIKE_JAX)
    lines = [f"Differs or fails there in JAX's own export, too: {alike}."] if alike else []
    lines += [f"**{e['name']}** {_complaint(e)}" for e in entries if e["verdict"] in (DIFFERS, FAILS)]
    return "".join(f"- {line}\n" for line in lines)


def _complaint(entry: dict[str, Any]) -> str:
    if entry["verdict"] == FAILS:
        return f"fails: {entry['failures'][OURS].splitlines()[0][:200]}"
    return f"is off by {entry['errors'][OURS]:.0e}"


def _refusals(refused: list[dict[str, str]]) -> str:
    names = ", ".join(f"`{entry['name']}`" for entry in refused)
    return f"- Refused by `export`: {names}.\n" if names else ""


def _table(rows: list[dict[str, Any]]) -> str:
    if not rows:
        return ""
    ratios = [row["seconds"][THEIRS] / row["seconds"][OURS] for row in rows]
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    return (
        "The median time of a call: gradients that pybridge exported, compared with `jax.grad`, "
        f"exported too; {mean:.2f} times as fast in the geometric mean:\n\n{table(_HEAD, map(_cells, rows))}"
    )


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    ours, theirs = (row["seconds"][side] for side in (OURS, THEIRS))
    errors = ", ".join(f"{row['errors'][side]:.0e}" for side in (OURS, THEIRS))
    return row["name"], seconds(ours), seconds(theirs), f"{theirs / ours:.3g}", errors
