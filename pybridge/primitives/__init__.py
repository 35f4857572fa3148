"""The one table of primitives: what a Program's primitives are on JAX's side, a family a file.

`TABLE` has a row for each primitive of docs/program.md; `LOWERINGS` says, for each primitive of lax, what
becomes of it. Adding a primitive is adding a row here and a rule in Julia.
"""

from __future__ import annotations

from . import (
    control,
    custom,
    elementwise,
    fourier,
    indexing,
    linalg,
    passes,
    random,
    reductions,
    solvers,
    structural,
    windows,
)
from .decompositions import DECOMPOSITIONS as _DECOMPOSITIONS
from .row import Row

__all__ = ["DECOMPOSITIONS", "LOWERINGS", "RANDOM", "TABLE", "Row"]

TABLE: dict[str, Row] = {
    row.op: row
    for family in (
        *(elementwise, structural, indexing, reductions, linalg, solvers, fourier, windows, random),
        *(control, custom, passes),
    )
    for row in family.ROWS
}

RANDOM = random.DECOMPOSITIONS
"""Those decompositions that know keys."""

DECOMPOSITIONS = {**_DECOMPOSITIONS, **RANDOM}

LOWERINGS: dict[str, Row] = {name: row for row in TABLE.values() for name in row.lax_names}
