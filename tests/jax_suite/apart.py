"""Tests of JAX that cannot hold for bridged functions, with the reason. They are not run."""

from __future__ import annotations

import re

_APPLY = (
    "says that JAX cannot differentiate x.at[i].apply(f); "
    "bridged, it has both derivatives, which tests/cases_arrays.py has cases of"
)

APART: dict[str, dict[str, str]] = {
    "lax_autodiff_test": {
        "testGatherTransposeCotangentDtype": (
            "says that a custom rule's cotangent may have another dtype than its primal, and so a gradient; "
            "those of Programs have the primal's (tests/api/test_bridge.py)"
        ),
        "test_scatter_apply_jvp": _APPLY,
        "test_scatter_apply_vjp": _APPLY,
    },
}
"""By module and test."""


def reason(module: str, test: str) -> str | None:
    """Why the test is apart, if it is; absl numbers the cases of a parametrised test."""
    tests = APART.get(module, {})
    return next((why for name, why in tests.items() if re.fullmatch(rf"{name}\d*", test)), None)
