"""The time to a first gradient in a new process: `python -m benchmarks.first [ROWS] [--json FILE] [--docs]`.

From `import jax` to the gradient, in processes of their own, on both sides:

empty: pybridge with the cache that `pybridge setup` leaves, less the time in which Julia starts; JAX, which
    compiles anew.
second: a second process, after one that ran the same. Both sides have JAX's persistent compilation cache.
"""

from __future__ import annotations

import json
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from .case import Case
from .markdown import facts
from .page import folder
from .processes import PREPARE, ask, run
from .rows import CASES

_ROOT = Path(__file__).resolve().parent.parent
_MEMORY = {
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
}
_HEAD = """# Time to the first gradient

What a user waits for in a new process: seconds from `import jax` to the first gradient of each row of the
[benchmarks](benchmarks.md), medians of {repeats}. *Empty*: pybridge with the [cache](../cache.md) that
`pybridge setup` leaves, which asks Julia and compiles, less Julia's start ({start:.2f} s); JAX, compiling.
*Second*: a process after one that did the same; both sides have JAX's persistent compilation cache. Of
pybridge's second processes {julia} libjulia mapped. `make bench-first` measures all of it and writes
this page.

{machine}

"""


_COLUMNS = ("row", "empty", "JAX anew", "ratio", "second", "JAX, its best", "ratio", "libjulia")


@dataclass(frozen=True)
class Timed:
    """Seconds of one row, each the median.

    start: of that, Julia's, which `empty` is without. julia: whether a second process had libjulia mapped.
    """

    case: str
    empty: float
    start: float
    second: float
    jax_anew: float
    jax_second: float
    julia: bool

    @property
    def jax_best(self) -> float:
        return min(self.jax_anew, self.jax_second)


def measure(case: Case, repeats: int) -> Timed:
    """A row's processes, one after the other, the two sides in turn."""
    times: dict[str, list[float]] = {
        "empty": [],
        "start": [],
        "second": [],
        "jax_anew": [],
        "jax_second": [],
    }
    julia = False
    for _ in range(repeats):
        with tempfile.TemporaryDirectory(prefix="pybridge-first-") as folder:
            places = {"PYBRIDGE_CACHE": f"{folder}/ours"}
            ours, theirs = (
                {**places, **_MEMORY, "JAX_COMPILATION_CACHE_DIR": f"{folder}/xla-{side}"}
                for side in ("pybridge", "jax")
            )
            run(*PREPARE, variables=places)
            told = {
                "empty": _ask(ours, case.name, "pybridge", "started"),
                "second": _ask(ours, case.name, "pybridge"),
                "jax_anew": _ask(places, case.name, "jax"),
            }
            _ask(theirs, case.name, "jax")  # fills JAX's cache
            told["jax_second"] = _ask(theirs, case.name, "jax")
            for name, answer in told.items():
                times[name].append(answer["seconds"] - answer["start"])
            times["start"].append(told["empty"]["start"])
            julia |= told["second"]["libjulia"]
    return Timed(case.name, **{name: statistics.median(x) for name, x in times.items()}, julia=julia)


def _ask(variables: dict[str, str], *words: str) -> dict[str, Any]:
    return ask("-m", "benchmarks.first_worker", *words, variables=variables)


def table(rows: Sequence[Timed]) -> Table:
    made = Table(*_COLUMNS)
    for row in _cells(rows):
        made.add_row(*row)
    return made


def _cells(rows: Sequence[Timed]) -> Iterator[tuple[str, ...]]:
    for row in rows:
        yield (
            row.case,
            f"{row.empty:.2f}",
            f"{row.jax_anew:.2f}",
            f"{row.empty / row.jax_anew:.2f}",
            f"{row.second:.2f}",
            f"{row.jax_best:.2f}",
            f"{row.second / row.jax_best:.2f}",
            "mapped" if row.julia else "no",
        )
    empty = statistics.geometric_mean(row.empty / row.jax_anew for row in rows)
    second = statistics.geometric_mean(row.second / row.jax_best for row in rows)
    yield ("geometric mean", "", "", f"{empty:.2f}", "", "", f"{second:.2f}", "")


def page(rows: Sequence[Timed], machine: dict[str, str], repeats: int) -> str:
    head = _HEAD.format(
        repeats=repeats,
        start=statistics.median(row.start for row in rows),
        machine=facts(machine),
        julia="some had" if any(row.julia for row in rows) else "none had",
    )
    lines = [f"| {' | '.join(_COLUMNS)} |", "|" + "---|" * len(_COLUMNS)]
    return head + "\n".join([*lines, *("| " + " | ".join(cells) + " |" for cells in _cells(rows))]) + "\n"


def main(
    names: Annotated[list[str] | None, typer.Argument(help="Names or their beginnings.")] = None,
    repeats: int = 3,
    json_: Annotated[Path | None, typer.Option("--json", help="Write the numbers to this file.")] = None,
    docs: Annotated[bool, typer.Option("--docs", help="Write docs/measurements/first_results.md.")] = False,
) -> None:
    """Measure first gradients in new processes."""
    from .measure import machine

    chosen = [case for case in CASES if case.make and (not names or case.name.startswith(tuple(names)))]
    rows = []
    console = Console(stderr=True)
    for case in chosen:
        rows.append(measure(case, repeats))
        console.print(" ".join(list(_cells(rows))[-2]))
    where = machine()
    Console(width=120).print(table(rows))
    if json_ is not None:
        told = {"machine": where, "rows": [asdict(row) for row in rows]}
        json_.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    if docs:
        target = folder(_ROOT) / "first_results.md"
        target.write_text(page(rows, where, repeats), encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
