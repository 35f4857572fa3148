"""What every program is asked: with `pb.bridge` around its loss, JAX's value and gradient to rounding."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import jax
import pytest
from agreement import assert_agree
from covering import FULL

import pybridge as pb

_TESTS: Counter[str] = Counter()  # by file


def both_executes(test: Callable) -> Callable:
    """The test by kernels and by XLA; where not everything is tested, a file's tests take turns."""
    executes = ["julia", "xla"]
    chosen = executes if FULL else [executes[_TESTS[test.__module__] % 2]]
    _TESTS[test.__module__] += 1
    return pytest.mark.parametrize("execute", chosen)(test)


def assert_same_gradient(
    loss: Callable, *args: Any, execute: str, has_aux: bool = False, argnums: Any = 0, **options: Any
) -> None:
    """Value, gradient and auxiliary results of `loss`, under jit as training runs them."""
    bridged = pb.bridge(loss, engine="transpose", execute=execute, **options)

    @jax.jit
    def both(*args: Any) -> list:
        return [jax.value_and_grad(f, argnums=argnums, has_aux=has_aux)(*args) for f in (bridged, loss)]

    found, expected = both(*args)
    assert_agree(found, expected, getattr(loss, "__name__", "loss"))
