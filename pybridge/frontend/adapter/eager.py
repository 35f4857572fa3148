"""How functions and pybridge's primitives run where nothing is traced: compiled."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from ...errors import PyBridgeError
from . import internals


def are_arrays(leaves: Sequence[Any]) -> bool:
    """Whether all are arrays that a compiled function takes as they are, and JAX is to compile at all."""
    # By their type, which takes a tenth of the time that isinstance takes for JAX's abstract classes.
    kind = internals.ArrayImpl
    return all(type(x) is kind for x in leaves) and not _is_watched()


def jitted(f: Callable, name: str) -> Callable:
    """The function by `jax.jit`, under a name in profiles."""

    def run(*args, **kwargs):
        return f(*args, **kwargs)

    run.__name__ = run.__qualname__ = name
    return jax.jit(run)


def _is_watched() -> bool:
    return jax.config.jax_disable_jit or jax.config.jax_debug_nans or jax.config.jax_debug_infs


def run(
    primitive: Any,
    operands: Sequence[Any],
    what: str,
    in_steps: Callable[..., Any] | None = None,
    **params: Any,
) -> list[Any]:
    """The results of a primitive with several; `params` are hashable.

    what: the name of what is run. in_steps: the same as operations of JAX.

    Where JAX runs without `jit`, or again without it since there was a NaN, it would come back here with the
    same arrays. Raises FloatingPointError for what `jax_debug_nans` and `jax_debug_infs` are to find.
    """
    compiled = _compiled(primitive, tuple(sorted(params.items())))
    if not _is_watched():
        return list(compiled(*operands))
    with jax.disable_jit(False), jax.debug_nans(False), jax.debug_infs(False):
        results = list(compiled(*operands))
    found = _wanted_special(results)
    if found is not None:
        _raise_by_steps(in_steps, operands)
        raise FloatingPointError(f"invalid value ({found}) encountered in {what}")
    return results


@functools.lru_cache(maxsize=1024)
def _compiled(primitive: Any, params: tuple[tuple[str, Any], ...]):
    return jax.jit(functools.partial(primitive.bind, **dict(params)))


def _wanted_special(results: Sequence[Any]) -> str | None:
    inexact = [y for y in results if jnp.issubdtype(y.dtype, jnp.inexact)]
    if jax.config.jax_debug_nans and any(bool(jnp.isnan(y).any()) for y in inexact):
        return "nan"
    if jax.config.jax_debug_infs and any(bool(jnp.isinf(y).any()) for y in inexact):
        return "inf"
    return None


def _raise_by_steps(in_steps: Callable[..., Any] | None, operands: Sequence[Any]) -> None:
    """JAX raises at the operation that is to blame, if it can run them."""
    try:
        if in_steps is not None:
            in_steps(*operands)
    except PyBridgeError:
        pass  # they are for native kernels alone
