"""A fixture under which XLA compiles without most of its optimisations, eager operations too."""

from __future__ import annotations

from collections.abc import Iterator

import jax
import pytest

_SETTING = "jax_disable_most_optimizations"


@pytest.fixture(autouse=True, scope="module")
def unoptimised() -> Iterator[None]:
    """For each module of a folder whose conftest.py imports this, or for the module that does.

    Compiling what runs once takes most of the time of such tests. `casekit.QUICK` is the same for one jit.
    """
    before = jax.config.read(_SETTING)
    jax.config.update(_SETTING, True)
    yield
    jax.config.update(_SETTING, before)
