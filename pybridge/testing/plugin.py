"""The pytest plugin. pytest imports it in every run, so it imports nothing until a test asks for it."""

from __future__ import annotations

from collections.abc import Callable

import pytest


@pytest.fixture(name="assert_derivatives_agree")
def _assert_derivatives_agree() -> Callable[..., None]:
    """`pybridge.testing.assert_derivatives_agree`."""
    from .agreeing import assert_derivatives_agree

    return assert_derivatives_agree
