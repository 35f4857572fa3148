"""What pybridge uses of `jax.extend`, from where JAX defines it: to import `jax.extend` is to import Pallas,
a fifth of the time that the import of pybridge takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import internals

if TYPE_CHECKING:
    from jax.extend.core import (
        ClosedJaxpr,
        DropVar,
        Jaxpr,
        Literal,
        Primitive,
        Var,
        jaxpr_as_fun,
        jaxprs_in_params,
        new_jaxpr_eqn,
    )
    from jax.extend.mlir import ir
    from jax.extend.mlir.dialects import stablehlo
    from jax.extend.random import threefry2x32_p
    from jax.extend.source_info_util import register_exclusion
else:
    ClosedJaxpr = internals.ClosedJaxpr
    DropVar = internals.DropVar
    Jaxpr = internals.Jaxpr
    Literal = internals.Literal
    Primitive = internals.Primitive
    Var = internals.Var
    jaxpr_as_fun = internals.jaxpr_as_fun
    jaxprs_in_params = internals.jaxprs_in_params
    new_jaxpr_eqn = internals.new_jaxpr_eqn
    ir = internals.ir
    stablehlo = internals.stablehlo
    threefry2x32_p = internals.threefry2x32_p
    register_exclusion = internals.register_exclusion

__all__ = [
    "ClosedJaxpr",
    "DropVar",
    "Jaxpr",
    "Literal",
    "Primitive",
    "Var",
    "ir",
    "jaxpr_as_fun",
    "jaxprs_in_params",
    "new_jaxpr_eqn",
    "register_exclusion",
    "stablehlo",
    "threefry2x32_p",
]
