"""For `unittest`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .agreeing import assert_derivatives_agree


class DerivativeTests:
    """A mixin of `unittest.TestCase`s."""

    def assertDerivativesAgree(self, f: Callable, args: Sequence[Any], **options: Any) -> None:
        """As `assert_derivatives_agree`."""
        __tracebackhide__ = True
        assert_derivatives_agree(f, args, **options)
