"""Derivatives in people's own tests: `assert_derivatives_agree`, and `DerivativeTests` for unittest.

The fixture `assert_derivatives_agree` is there in every pytest that has pybridge installed. Importing this
imports no JAX.
"""

from __future__ import annotations

from .agreeing import assert_derivatives_agree
from .cases import DerivativeTests

__all__ = ["DerivativeTests", "assert_derivatives_agree"]
