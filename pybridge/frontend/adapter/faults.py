"""Releases of JAX that compute wrong numbers, which pybridge cannot prevent."""

from __future__ import annotations

import functools
import warnings

import jax

_FAULTS = {
    (0, 10, 2): "on the CPU, under jit, it computes wrong sums of matrix-vector products in a vmap "
    "(jax issue 39103)",
}

REMEDY = "pip install 'jax!=0.10.2,>=0.10.1' 'jaxlib!=0.10.2,>=0.10.1'"


def fault() -> str | None:
    """What the installed JAX computes wrongly; None where nothing is known."""
    return _FAULTS.get(jax.__version_info__)


@functools.cache
def warn_once() -> None:
    """Warn of that, once in a process, at the line that called what calls this."""
    found = fault()
    if found is not None:
        text = f"JAX {jax.__version__} is installed: {found}. pybridge does not support it: {REMEDY}"
        warnings.warn(text, RuntimeWarning, stacklevel=3)
