"""The tables of docs/measurements/zoo.md, from results."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from benchmarks.markdown import between, table

from .problem import Problem
from .results import Derivative, Result

_HEAD = ("package", "version", "problem", "works", "value", "gradient", "HVP", "first gradient, both")


def write(page: Path, problems: Iterable[Problem], tables: Iterable[dict[str, Result]]) -> None:
    """Puts a table for each version of JAX between the page's marks."""
    problems = tuple(problems)
    written = "\n".join(_section(problems, results) for results in tables)
    page.write_text(between(page.read_text(encoding="utf-8"), "zoo", written), encoding="utf-8")


def _section(problems: tuple[Problem, ...], results: dict[str, Result]) -> str:
    rows = [(problem, results[problem.name]) for problem in problems if problem.name in results]
    machine = next(result.machine for _, result in rows if result.machine)
    working = [problem for problem, result in rows if not result.complaints(problem.absent)]
    packages = {problem.distribution for problem in working}
    where = ", ".join(f"{name} {value}" for name, value in machine.items() if name != "jax")
    return (
        f"## JAX {rows[0][1].jax}\n\n"
        f"{len(working)} of {len(rows)} problems work, of {len(packages)} packages. "
        f"Measured with {where}.\n\n"
        f"{table(_HEAD, (_cells(problem, result) for problem, result in rows))}"
    )


def _cells(problem: Problem, result: Result) -> tuple[str, ...]:
    gradient = result.derivatives.get("gradient", Derivative())
    return (
        problem.distribution,
        result.version,
        problem.title,
        _works(problem, result),
        *(
            _speed(result.derivatives.get(name), problem.absent.get(name))
            for name in ("value", "gradient", "hvp")
        ),
        "" if gradient.first is None else f"{_seconds(gradient.first)}, {_seconds(gradient.jax_first)}",
    )


def _works(problem: Problem, result: Result) -> str:
    wrong = result.complaints(problem.absent)
    if wrong:
        return "**no**: " + "; ".join(wrong).replace("|", "\\|")
    notes = [f"no {'HVP' if name == 'hvp' else name} by JAX: {why}" for name, why in problem.absent.items()]
    return "; ".join(["yes", *dict.fromkeys(notes)])


def _speed(got: Derivative | None, absent: str | None) -> str:
    if absent and got is not None and got.agrees and got.seconds:
        return f"here alone ({_seconds(got.seconds)})"
    if absent or got is None or got.times_as_fast is None:
        return "-"
    return f"{got.times_as_fast:.3g} ({_seconds(got.seconds)})"


def _seconds(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.1g} s"
