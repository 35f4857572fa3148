"""Which primitives JAX has, and which rules for them."""

from __future__ import annotations

import functools
import importlib
import sys
from typing import Any, NamedTuple

from jax.interpreters import ad

from . import internals

_OURS = frozenset(
    {
        "julia_call",
        "julia_jvp",
        "gradient_product",
        "scaled_gradient",
        "julia_function",
        "portable_cholesky",
        "portable_triangular_solve",
        "enzyme_call",
        "enzyme_derivative",
        "linear_map",
        "while_passes",
        "custom_vjp_tangent",
    }
)


class JaxRules(NamedTuple):
    """Which rules JAX has for a primitive."""

    jvp: bool
    transpose: bool


def rules() -> tuple[set[Any], set[Any]]:
    """JAX's primitives that have a JVP rule, and those with a transpose rule in either of its two tables."""
    return set(ad.primitive_jvps), set(ad.primitive_transposes) | set(internals.fancy_transposes)


def primitives() -> dict[str, JaxRules]:
    """Every primitive of JAX that it can differentiate, transpose or lower, pybridge's own left out."""
    importlib.import_module("jax.experimental.sparse")  # registers its primitives

    jvps, transposes = ({p.name for p in table} for table in rules())
    lowered = {p.name for p in internals.lowerings}.union(
        *({p.name for p in table} for table in internals.platform_specific_lowerings.values())
    )
    found = (jvps | transposes | lowered) - _OURS
    return {name: JaxRules(name in jvps, name in transposes) for name in found}


@functools.cache
def is_of_jax(primitive: Any) -> bool:
    """Whether JAX itself defines the primitive, not a package that uses it."""
    modules = [m for name, m in list(sys.modules.items()) if name.split(".")[0] == "jax"]
    return any(value is primitive for module in modules for value in list(vars(module).values()))
