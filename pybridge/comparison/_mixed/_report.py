"""The result of `mixed`: the function, and what of it stays in 64 bits."""

from __future__ import annotations

import dataclasses
import functools
import html
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...errors import ArgumentError
from ...frontend import emission
from ...frontend.names import function_name
from ...frontend.static_arguments import Fixed, StaticArguments
from ...frontend.structures import with_structure
from ...ir.program import Program
from .._shown import Saved, finite

if TYPE_CHECKING:
    from rich.console import Group


@dataclass(frozen=True)
class Kept:
    """An equation that stays in 64 bits.

    number: in its body. place: the branches, loops' conditions and the like around it. error: what its own
    rounding in float32 would add, as a part of the error that was asked for. reason: why it stays.
    """

    op: str
    equation: str
    source: str
    number: int
    place: tuple[str, ...]
    error: float
    reason: str


@dataclass(frozen=True, repr=False)
class Precision(Saved):
    """What is in 64 bits and what in 32. Errors are relative to the largest magnitude in a result.

    error, absolute: what was asked for. bound: of the error, to first order, for the elements of the results
    looked at; bound_in_64: of the function as it is. measured: largest error against the function as it is,
    at the example's arguments; nearby: the same at arguments around them; None where that is not finite.
    narrow: how many equations are in 32 bits, of `total` that were in 64. kept: those that are not, the
    worst first. uncovered: operations whose errors are not known; they stay.
    """

    function: str
    arguments: str
    error: float
    absolute: float
    bound: float
    bound_in_64: float
    measured: float
    nearby: float | None
    narrow: int
    total: int
    kept: tuple[Kept, ...]
    uncovered: tuple[str, ...] = ()

    @property
    def lines(self) -> dict[str, int]:
        """The lines of the equations in 64 bits, and how many of them each has."""
        found: dict[str, int] = {}
        for kept in self.kept:
            found[kept.source] = found.get(kept.source, 0) + 1
        return found

    def __repr__(self) -> str:
        return (
            f"<Precision of {self.function}({self.arguments}): {self.narrow} of {self.total} equations in 32 "
            f"bits, error {self.measured:.1e}>"
        )

    def __rich__(self) -> Group:
        from ._table import table

        return table(self)

    def to_json(self) -> str:
        """Everything, as one JSON object; what is not finite as text."""
        return json.dumps(finite(dataclasses.asdict(self)), indent=1)


class Mixed:
    """A function with some of its values in float32: of the arguments that it was made for, and their types.

    An ordinary JAX function; `program` is what it runs, `report` says what stays in 64 bits.
    """

    __wrapped__: Callable

    def __init__(
        self, f: Callable, program: Program, report: Precision, static: StaticArguments, fixed: Fixed
    ):
        self.program, self.report = program, report
        self._static, self._fixed = static, fixed
        functools.update_wrapper(self, f, updated=())

    def __call__(self, *args, **kwargs):
        args, kwargs, fixed = self._static.split(args, kwargs)
        if fixed != self._fixed:
            raise ArgumentError(
                f"{function_name(self)} was made for other static arguments: make one for these with pb.mixed"
            )
        return self._run(*args, **kwargs)

    @property
    def static_arguments(self) -> StaticArguments:
        return self._static

    @functools.cached_property
    def _run(self) -> Callable[..., Any]:
        program = self.program
        assert program.structure is not None
        flat = emission.to_jax(program, at_sources=True)
        return with_structure(program.structure, flat, program.name)

    def __repr__(self) -> str:
        r = self.report
        return f"<mixed {function_name(self)}: {r.narrow} of {r.total} equations in 32 bits>"

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(repr(self))}</p>{self.report._repr_html_()}"
