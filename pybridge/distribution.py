"""The name under which pip knows this package, which is not the name that Python imports, and its version."""

from __future__ import annotations

import importlib.metadata

NAME = "pybridge-jax"
"""On PyPI `pybridge` is an unrelated project."""

UNINSTALLED = "0+uninstalled"
"""The version of sources that no pip has installed."""


def version() -> str:
    try:
        return importlib.metadata.version(NAME)
    except importlib.metadata.PackageNotFoundError:
        return UNINSTALLED
