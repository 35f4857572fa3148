"""`mixed`: which equations need 64 bits for a wished error, and the function with the rest in 32."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...errors import UnknownOption
from ...frontend import keys
from ...frontend.static_arguments import Argnames, Argnums, static_arguments
from ...frontend.tracing import trace
from .._problem import plain_function
from ._report import Mixed
from ._search import Search
from ._trial import Tolerance

Progress = Callable[[str], None]


def mixed(
    f: Callable,
    *,
    error: float,
    absolute: float = 0.0,
    seed: int = 0,
    static_argnums: Argnums = None,
    static_argnames: Argnames = None,
    progress: Progress = lambda _: None,
) -> Callable[..., Mixed]:
    """`mixed(f, error=1e-6)(*args)` is `f` with as much of it in float32 as the error at `args` allows.

    The result is a function like `f`, of arguments of the same types and shapes, whose results differ from
    those of `f` by at most `error` of the largest magnitude in the same result, plus `absolute`. It
    takes and returns float64; `.report` says which equations stay in 64 bits and why. To `jit`, `grad`,
    `vmap`, `bridge` and `export` it is an ordinary JAX function. `error` is that of the value: for a
    derivative's, give `jax.value_and_grad(f)`.

    The choice is made at `args`, by `blame`'s model of rounding: to first order, what each equation in
    float32 would add to the error. It is tried at `args` and at points 1e-3 around them, and made stricter
    until the errors found are as small as was asked.

    seed: of these points. static_argnums, static_argnames: arguments that are not arrays but hashable values,
    as for `bridge`. progress: called with what is being done.

    Raises PrecisionUnreachable where not even 64 bits keep the error; ArgumentError where nothing is in 64
    bits; what `trace` raises.
    """
    if not _is_number(error) or not 0 < error < 1:
        raise UnknownOption(f"error must be a number between 0 and 1, such as 1e-6, got {error!r}")
    if not _is_number(absolute) or not 0 <= absolute < math.inf:
        raise UnknownOption(f"absolute must be a number, 0 or more, got {absolute!r}")
    static = static_arguments(f, static_argnums, static_argnames)
    plain = plain_function(f)

    @functools.wraps(f, updated=())
    def example(*args, **kwargs) -> Mixed:
        progress("tracing")
        dynamic, named, fixed = static.split(args, kwargs)
        program = trace(fixed.into(plain))(*dynamic, **named)
        leaves = [jnp.asarray(keys.raw(x)) for x in jax.tree.leaves((dynamic, named))]
        search = Search(program, leaves, Tolerance(error, absolute), seed, progress)
        return Mixed(f, *search.run(), static, fixed)

    return example


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)
