"""The one table of primitives: what a Program's primitives are on JAX's side, a family a file.

`SPECS` has one for each operation of `ir.schema`; `LOWERINGS` says, for each primitive of lax, what becomes
of it. Adding a primitive is a line of the schema, a spec here and a rule in Julia; an elementwise one
without attributes needs no spec where `jax.lax` has a function of its name.
"""

from __future__ import annotations

from . import (
    control,
    custom,
    elementwise,
    fourier,
    indexing,
    linalg,
    random,
    reductions,
    solvers,
    structural,
    while_passes,
    windows,
)
from .decompositions import DECOMPOSITIONS as _DECOMPOSITIONS
from .spec import Spec

__all__ = ["DECOMPOSITIONS", "LOWERINGS", "RANDOM", "SPECS", "Spec"]

SPECS: dict[str, Spec] = {
    spec.op: spec
    for family in (
        *(elementwise, structural, indexing, reductions, linalg, solvers, fourier, windows, random),
        *(control, custom, while_passes),
    )
    for spec in family.SPECS
}

RANDOM = random.DECOMPOSITIONS
"""Those decompositions that know keys."""

DECOMPOSITIONS = {**_DECOMPOSITIONS, **RANDOM}

LOWERINGS: dict[str, Spec] = {name: spec for spec in SPECS.values() for name in spec.lax_names}
