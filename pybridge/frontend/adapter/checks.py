"""What `checkify` checks by itself (NaNs, divisions, indices), in primitives that stand for others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

from . import internals, jaxprs

_HAS_CONTEXT = jax.__version_info__ >= (0, 11)
"""Since this JAX a rule's first argument says which errors have which numbers."""


def register(primitive: Any, definition: Callable[..., Callable], *, checks: bool = False) -> None:
    """definition: parameters of the primitive -> what it does, in operations of JAX.

    checks: that has checks of its own.
    """

    def rule(*given: Any, **params: Any) -> tuple[Any, list[Any]]:
        context, (error, enabled, *operands) = given[:_HAS_CONTEXT], given[_HAS_CONTEXT:]
        if not checks and enabled <= {internals.FailedCheckError}:  # the user's own, which are not in there
            return error, primitive.bind(*operands, **params)
        jaxpr = jaxprs.traced(definition(**params), [jax.typeof(x) for x in operands])
        return internals.checkify_jaxpr(*context, jaxpr, enabled, error, *operands)

    internals.error_checks[primitive] = rule
