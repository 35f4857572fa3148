"""Fixtures shared by all tests."""

from __future__ import annotations

import jax
import pytest


@pytest.fixture
def x64():
    """64-bit types in JAX for one test."""
    with jax.enable_x64(True):
        yield
