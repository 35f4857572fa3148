"""The columns of a comparison, as text for all forms in which it is shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..quantities import MISSING, seconds, size
from ._nestings import NESTINGS, Nesting
from ._rows import Error, Row, Second

_CANNOT = "cannot"
_SHORT = dict(zip(NESTINGS, ("F/R", "R/F", "R/R"), strict=True))


@dataclass(frozen=True)
class Column:
    """lines: of the heading, where a terminal breaks it. cell: what a row has there, in lines."""

    lines: str
    cell: Callable[[Row], str]

    @property
    def heading(self) -> str:
        """In one line."""
        return self.lines.replace("-\n", "").replace("\n", " ")


def columns(second: bool) -> tuple[Column, ...]:
    """second: with those of second derivatives."""
    return (*_FIRST, *_SECOND) if second else _FIRST


def _of_error(error: Error | None) -> str:
    if error is None:
        return MISSING
    lines = [f"{error.absolute:.1e}", f"{error.relative:.1e}"]
    if error.units is not None:
        shown = f"{error.units:.0f}" if 100 <= error.units < 1e5 else f"{error.units:.2g}"
        lines.append(f"{shown} κε")
    if error.nonfinite:
        lines.append(f"{error.nonfinite} NaN/inf")
    if error.misplaced:
        lines.append(f"{error.misplaced} misplaced")
    return "\n".join(lines)


def _of_number(number: float | None) -> str:
    return MISSING if number is None else f"{number:.1e}"


def _of_times(value: float | None, ratio: float | None) -> str:
    return seconds(value) + (f"\n{ratio:.2f} x jax" if value and ratio is not None else "")


def _orders(row: Row) -> str:
    if not row.ran:
        return MISSING
    return "\n".join(str(t) if t else MISSING for t in (row.taylor_jvp, row.taylor_vjp))


def _product(nesting: Nesting) -> Callable[[Row], str]:
    def cell(row: Row) -> str:
        second = row.second or Second()
        return _CANNOT if second.cannot else _of_error(second.errors.get(nesting))

    return cell


_FIRST = (
    Column("value\nerror", lambda r: _of_error(r.value)),
    Column("JVP\nerror", lambda r: _of_error(r.jvp)),
    Column("VJP\nerror", lambda r: _of_error(r.vjp)),
    Column("<u,Jv>\n=<J'u,v>", lambda r: _of_number(r.adjoint)),
    Column("Taylor\norder", _orders),
    Column("equa-\ntions", lambda r: MISSING if r.equations is None else str(r.equations)),
    Column("resi-\nduals", lambda r: size(r.memory.residuals if r.memory else None)),
    Column("VJP\nmemory", lambda r: size(r.memory.vjp if r.memory else None)),
    Column("first\ngradient", lambda r: seconds(r.first_gradient)),
    Column("value\ntime", lambda r: _of_times(r.times.value, r.times.value_ratio) if r.times else MISSING),
    Column("VJP\ntime", lambda r: _of_times(r.times.vjp, r.times.vjp_ratio) if r.times else MISSING),
)
_SECOND = (
    *(Column(f"HVP {_SHORT[nesting]}\nerror", _product(nesting)) for nesting in NESTINGS),
    Column("<w,Hv>\n=<v,Hw>", lambda r: _of_number(r.second.symmetry if r.second else None)),
    Column("Taylor\nof HVP", lambda r: str(r.second.taylor) if r.second and r.second.taylor else MISSING),
)
