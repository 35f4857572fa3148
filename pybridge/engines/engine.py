"""What an engine is: a way to give a traced function its derivatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import PyBridgeError
from ..ir.program import Program


@dataclass(frozen=True)
class Options:
    """execute: one of the engine's `executes`, or "auto" if it has several; for an export "portable", which
        is "xla" without calls of a platform's library.

    explain: say on stderr how each Program runs, and why.
    guard: (results, arrays that are computed with them) -> the arrays, which pass a check of the results. The
        derivative's do; None without a check.
    """

    execute: str
    explain: bool = False
    guard: Any = None


@dataclass(frozen=True)
class Engine:
    """name: as `bridge(f, engine=name)` knows it.

    apply: (program, arrays, options) -> results; differentiable in JAX by this engine's means.
    unavailable: the exception that says why the engine cannot work here and what to do, or None.
    executes: the execute modes it can do.
    orders: how often what it makes can be differentiated, where that is known to end.
    reverses_loops: whether its native kernels have reverse mode through `while` loops.
    """

    name: str
    apply: Callable[[Program, Sequence[Any], Options], Sequence[Any]]
    unavailable: Callable[[], PyBridgeError | None]
    executes: tuple[str, ...]
    orders: int | None = None
    reverses_loops: bool = False
