"""Where what JAX transforms now will probably run. Lowering decides; what is made before is made for that."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import jax

BY_XLA = ("xla", "portable")
"""The values of `execute` that name XLA."""

_exported: ContextVar[bool] = ContextVar("exported", default=False)


@contextmanager
def in_export() -> Iterator[None]:
    """What is traced within is to be exported, and runs as XLA's operations, whatever `execute` is."""
    token = _exported.set(True)
    try:
        yield
    finally:
        _exported.reset(token)


def probably_native(execute: str) -> bool:
    """Whether native kernels of Julia's will run it, which are for the CPU."""
    if execute in BY_XLA or _exported.get():
        return False
    return execute == "julia" or jax.default_backend() == "cpu"
