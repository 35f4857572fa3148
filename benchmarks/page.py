"""The page of a suite in docs/measurements/, and some rows in README, from results."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pybridge.quantities import MISSING, seconds, size

from .choices import LEAST
from .claims import claims
from .markdown import between, table
from .report import Line, environment, failures, figure, limit_lines, lines
from .results import OLDER_JAX, Measured, Results
from .settings import FLAG
from .suites import Suite

_MARK = {True: "yes", False: "**no**", None: ""}
_BENCHMARKS = """\
# Benchmarks: native kernels and JAX

`make bench`, or `pybridge bench` in a checkout, measures everything on this page and writes it. In each row
pybridge and its rivals have a process each, all held to the same core or to the same two, and run under
`jax.jit`: in one process, what one side has allocated decides how fast the other gets memory. Medians are of
samples that the processes take in turns; a sample is one call, or as many as fit 20 ms, since the first finds
the caches as another side has left them. "Times as fast" is the rival's median over pybridge's; what is
required of it is in the next column, where 0.5 means that pybridge may take twice the rival's time. Each
result of pybridge's is compared with JAX's in float64.

The rivals run a second time, in processes of their own, with the flag that has XLA compile loops whole:

```
XLA_FLAGS={flag}
```

The faster of both is the rival; where that is the one with the flag, the table says so. pybridge's own time
is without it, and pybridge sets no flags. It is what a user of plain JAX on CPU can set, too: the newest XLA
compiles loops of at most 2000 instructions whole without it. Where the oldest JAX that pybridge supports is
installed (`make test-oldest`), a column has the time of the first rival of a row with that, as it comes.

*First result* is what the first call takes, with Julia started: tracing, derivatives and all compilation.
The rows of new processes start with the interpreter: their time is that first result, imports and Julia's
start included. `x*g` moves as much memory as the VJP in its row, two arrays in and one out: where what is
required is less than its time, memory does not let any derivative get there. *Error* is that against JAX's
result in float64, relative to the largest element; in rows in float32 JAX's own is next to it. *Memory* is
that of results and temporary buffers by `compiled.memory_analysis()`, and of the largest workspace of the
native kernels that are called.

*By hand* is the same derivative in plain Julia (`benchmarks/limits`), as an expert writes it in an afternoon:
loops without AD and without allocation, forwards, keeping what is needed, and backwards, with vectors where
they help. It does what the program does trip by trip: no work moves from one trip to another, and no product
of matrices is bracketed differently. It runs on the same data and the same core, in a process of its own
right after the row; its result is compared with JAX's in float64. A call by JAX, which costs what the call
with two scalars does, is part of pybridge's time, and not of the time by hand. *Required of the row* is the
time that its requirement against JAX leaves.
"""
_POLYBENCH = """\
# Polybench and NPBench

`make bench-polybench`, or `pybridge bench --suite polybench` in a checkout, measures everything on this page
and writes it. These are the programs of Polybench 4.2 and NPBench that have a gradient, in JAX as their
users write it: stencils by slices of whole arrays, linear algebra by loops with indexed updates, products,
networks (`benchmarks/polybench`). Measured is the gradient of the sum of a program's results by its main
input, at Polybench's and NPBench's small and medium sizes; of the multilayer perceptron, NPBench's small size
is the medium one, and a tenth of it the small. Gram-Schmidt has more rows than columns, unlike Polybench's,
which leaves its last columns no direction, and seidel_2d has the small size alone: at the medium one, 316
times as much where an update copies the array, a call of JAX's derivative would take five minutes. Where
results are probabilities, whose sum is one, their squares are summed. How it is measured, and what the
columns are, is said in [benchmarks](benchmarks.md): the rival is the faster of JAX as it comes and with

```
XLA_FLAGS={flag}
```
"""
_CHOICES = """\
# Cost model: what execute="auto" chooses

`make bench-choices`, or `pybridge bench --suite choices` in a checkout, measures everything on this page and
writes it. With `execute="auto"`, the default, a Program runs on CPU as a native kernel of Julia's or as XLA's
operations. A cost model (`pybridge/ir/cost_model.py`) chooses: it estimates both times from the
Program's equations, and takes XLA where that is faster by a tenth, or as fast and compiled sooner. Here the
choice is compared with both; at least {least} of the speed of either is required of it. How it is measured,
and what the columns are, is said in [benchmarks](benchmarks.md). `pybridge.bridge(f, explain=True)` says what
is chosen, and why.
"""
_SHORTFALLS = Path(__file__).parent / "shortfalls"  # a text for each page that has one
_INTRODUCTIONS = {"benchmarks": _BENCHMARKS, "polybench": _POLYBENCH, "choices": _CHOICES}


def folder(root: Path) -> Path:
    """Where a checkout has the pages of measurements, and their pictures."""
    return root / "docs" / "measurements"


def page(suite: Suite, results: Results, picture: str) -> str:
    parts = [
        _INTRODUCTIONS[suite.page].format(flag=FLAG, least=LEAST),
        f"![times as fast]({picture})\n",
        environment(results) + ".\n",
        *(f"{note}\n" for note in results.notes),
    ]
    for threads in sorted({row.threads for row in results.rows}):
        parts.append(f"## {_threads(threads)}\n")
        shown = [line for line in lines(results) if line.row.threads == threads]
        parts.append(table(_head(results), (_cells(line, results) for line in shown)))
    by_hand = [
        (line.case.title, *line.cells, _MARK[line.met], line.required_time) for line in limit_lines(results)
    ]
    if by_hand:
        parts.append("## By hand, one thread\n\n" + table(_LIMIT_HEAD, by_hand))
    why = _SHORTFALLS / f"{suite.page}.md"
    if why.exists():
        parts.append(why.read_text())
    together = [f"- {claim.text}: {'met' if claim.met else '**not met**'}" for claim in claims(results)]
    if together:
        parts.append("## Of several rows\n\n" + "\n".join(together) + "\n")
    failed = [
        f"- {row.case}, {_threads(row.threads)}, {name}: {side.failure}"
        for row, name, side in failures(results)
    ]
    if failed:
        parts.append("## Failures\n\n" + "\n".join(failed) + "\n")
    return "\n".join(parts)


_TIMES = ("benchmark", "against", "pybridge", "rival", "times as fast", "required", "met")
_OTHERS = ("first result, both", "error, both", "memory, both")


def _head(results: Results) -> tuple[str, ...]:
    older = results.machine.get(OLDER_JAX)
    return (*_TIMES, *([f"JAX {older}"] if older else []), *_OTHERS)


_MORE = {True: "", False: " (**more**)", None: ""}
_LIMIT_HEAD = ("benchmark", "pybridge", "by hand", "times its time", "at most", "met", "required of the row")


def _cells(line: Line, results: Results) -> tuple[str, ...]:
    row = line.row
    rival = row.rivals[line.rival]
    memory = MISSING if row.memory_met() is None else f"{size(row.ours.memory)}, {size(row.reference_memory)}"
    return (
        line.case.title,
        f"`{line.against}`",
        *line.times,
        figure(line.ratio),
        figure(line.required),
        _MARK[line.met],
        *([_older(line)] if OLDER_JAX in results.machine else []),
        f"{seconds(row.ours.first)}, {seconds(rival.first)}",
        _error(row),
        memory + _MORE[row.memory_met()],
    )


def _older(line: Line) -> str:
    """The time of the row's first rival with the older JAX."""
    older = line.row.older if line.rival == line.case.rivals[0] else None
    return seconds(older.seconds) if older else ""


def _error(row: Measured) -> str:
    if row.ours.error is None:
        return "agrees" if row.agrees else "**failed**"
    if not row.agrees:
        return f"{row.ours.error:.0e} (**wrong**)"
    return ", ".join(f"{error:.1e}" for error in row.errors) + _MORE[row.error_met()]


def _threads(count: int) -> str:
    return "One thread" if count == 1 else f"{count} threads"


IN_README = ("mlp", "lorenz", "kinematics", "seed-512", "many-lorenz-10000", "path-2000")
"""Rows of several kinds, with the smallest gain and with large ones."""


def short_table(results: Results) -> str:
    """README's rows, each against its first rival, on each number of threads."""
    firsts = (line for line in lines(results) if line.rival == line.case.rivals[0])
    chosen = [line for line in firsts if line.case.name in IN_README]
    counts = sorted({line.row.threads for line in chosen})
    head = ("benchmark", "against", *(f"times as fast, {_threads(n).lower()}" for n in counts))
    cases = {line.case.name: line.case for line in chosen}
    ratios = {(line.case.name, line.row.threads): line.ratio for line in chosen}
    return table(
        head,
        (
            (case.title, f"`{case.rivals[0]}`", *(figure(ratios.get((case.name, n))) for n in counts))
            for case in map(cases.get, IN_README)
            if case is not None
        ),
    )


def replace_short_table(text: str, results: Results) -> str:
    """The README with this run's table between its marks; without marks it stays as it is."""
    return between(text, "benchmarks", short_table(results))


def write(suite: Suite, results: Results, root: Path, picture: str) -> Iterator[Path]:
    """Writes the page and, of the rows that it shows, the README's table; says which files these are."""
    target, readme = folder(root) / f"{suite.page}.md", root / "README.md"
    target.write_text(page(suite, results, picture), encoding="utf-8")
    yield target
    if suite.page != "benchmarks":
        return
    old = readme.read_text(encoding="utf-8")
    new = replace_short_table(old, results)
    if new != old:
        readme.write_text(new, encoding="utf-8")
        yield readme
