"""What a benchmark is: a program, what it is measured against, and what is required of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax

import pybridge as pb

OURS = "pybridge"
GRAD = "jax.grad"
THREADS = (1, 2)


@dataclass(frozen=True, eq=False)
class Problem:
    """One program at one size. Its functions are to be run under `jax.jit`, all on the same `args`.

    ours: what pybridge runs; a function of the same signature and results as `reference`.
    reference: JAX's own, which says what is right. The rivals may do something else, such as copying.
    constants: numbers of the program that are no arguments, for the row's limit.
    """

    ours: Callable
    reference: Callable
    rivals: Mapping[str, Callable]
    args: tuple
    constants: tuple[float, ...] = ()


@dataclass(frozen=True)
class Requirement:
    """At least `ratio` times as fast as `rival` where there are `threads` (None: any number of them).

    Below 1, pybridge may be slower: 0.5 is "at most twice its time". None: the rival is shown, no more.
    """

    rival: str
    ratio: float | None
    threads: int | None = None


@dataclass(frozen=True)
class Limit:
    """The same derivative by hand (benchmarks/limits): pybridge's time is at most `most` times its time."""

    file: str
    most: float = 1.6


@dataclass(frozen=True)
class Case:
    """A row of the table.

    make: the Problem; with True, one small enough for a smoke test.
    cold: (side, quick) -> result, for rows that are about the time from a new process to the first result;
        sides are OURS and the rivals.
    tolerance: the largest error, relative to the largest element of the leaf, that is agreement.
    x64: whether the program itself is in float64; float32 is compared with float64's result all the same.
    limit: what the row is held against on one core, where someone has written it.
    """

    name: str
    title: str
    requirements: tuple[Requirement, ...]
    make: Callable[[bool], Problem] | None = None
    cold: Callable[[str, bool], Any] | None = None
    tolerance: float = 1e-9
    x64: bool = True
    limit: Limit | None = None

    @property
    def rivals(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(r.rival for r in self.requirements))


def against_grad(ratio: float) -> tuple[Requirement, ...]:
    return (Requirement(GRAD, ratio),)


def gradient(
    f: Callable, args: tuple, argnums: int | tuple[int, ...] = 0, constants: tuple[float, ...] = ()
) -> Problem:
    """The gradient of `f`, bridged, against `jax.grad` of it."""
    theirs = jax.grad(f, argnums)
    return Problem(jax.grad(native(f), argnums), theirs, {GRAD: theirs}, args, constants)


def native(f: Callable) -> Callable:
    """`f` by native kernels, or not at all: a benchmark that fell back to XLA would measure XLA."""
    return pb.bridge(f, execute="julia")
