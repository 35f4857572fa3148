"""Fixtures of the tests of Julia functions."""

from __future__ import annotations

import pytest

from pybridge.runtime import julia


@pytest.fixture(scope="session")
def enzyme() -> str:
    """The version of Enzyme.jl; skips where there is none. Asks another Julia, and starts nothing here."""
    found = julia.find().julia
    if found is None or found.enzyme is None:
        pytest.skip(f"needs Enzyme.jl, which Julia {found.version if found else '(none)'} does not have")
    return found.enzyme


@pytest.fixture(autouse=True)
def _x64(x64):
    """Julia computes in 64 bits unless told otherwise."""
