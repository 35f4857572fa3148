"""`python -m tests.planted` runs the planted faults and names the test that finds each."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from benchmarks.markdown import between, table

from .fault import ROOT, faults
from .run import Outcome, outcome

PAGE = ROOT / "docs" / "planted_faults.md"


def updated(text: str, outcomes: list[Outcome]) -> str:
    """The page with a row for each fault that ran; rows of the others that there are stay."""
    lines = (line for line in text.splitlines() if line.startswith("| ") and line.count(" | ") == 3)
    cells = {line[2:].partition(" | ")[0]: tuple(line[2:-2].split(" | ")) for line in lines}
    for o in outcomes:
        changed = ", ".join(f"`{path}`" for path in o.fault.changed)
        cells[o.fault.name] = (o.fault.name, o.fault.title.replace("|", "\\|"), changed, _finder(o))
    rows = (cells[fault.name] for fault in faults() if fault.name in cells)
    return between(text, "planted", table(("fault", "what is wrong", "changes", "found by"), rows))


def _finder(found: Outcome) -> str:
    return f"`{found.found[0]}`".replace("|", "\\|") if found.found else "**nothing**"


def main(
    names: Annotated[list[str] | None, typer.Argument(help="Faults; all of them, if none.")] = None,
    jobs: Annotated[int, typer.Option(help="Parts that run at once.")] = 2,
    page: Annotated[bool, typer.Option("--page", help="Put what ran into docs/planted_faults.md.")] = False,
) -> None:
    console = Console(highlight=False, soft_wrap=True)
    chosen = [fault for fault in faults() if not names or fault.name in names]
    unknown = set(names or ()) - {fault.name for fault in chosen}
    if unknown:
        raise typer.BadParameter(f"no fault is named {' or '.join(sorted(unknown))}")
    outcomes = []
    with ThreadPoolExecutor(jobs) as pool:
        for result in pool.map(outcome, chosen):
            outcomes.append(result)
            finder = f"[green]{escape(result.found[0])}[/]" if result.found else "[red]nothing finds it[/]"
            console.print(f"{result.fault.name:40} {result.seconds:4.0f} s  {finder}")
            if not result.found:
                console.print(result.output[-3000:], markup=False)
            if page:
                PAGE.write_text(updated(PAGE.read_text(encoding="utf-8"), [result]), encoding="utf-8")
    found = sum(bool(result.found) for result in outcomes)
    console.print(f"{found} of {len(outcomes)} found")
    raise typer.Exit(found < len(outcomes))


if __name__ == "__main__":
    typer.run(main)
