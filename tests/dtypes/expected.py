"""Where pybridge differs from JAX on purpose: docs/limits.md has a line for each."""

from __future__ import annotations

import re

_EXTREMA = "(max|min|cummax|cummin|clamp|reduce_max|reduce_min|sort|top_k)"

EXPECTED: dict[str, str] = {
    rf"{_EXTREMA}\S*/c\d+\S* (jvp|vjp) \w+ accepted": "derivatives of the larger of complex numbers",
    r"(max|min)/2/c\d+ value (julia|auto|eager) wrong": "NaN where the first is NaN",
    r"scatter_applied/c128 \w+ \w+ wrong": "a sine of a large sine, known to 10 digits by either",
    r"(cummax|cummin)\S*/ties (jvp|vjp) \w+ wrong": "which of equal running extrema has the derivative",
    r"cum(prod|logsumexp)\S*/special value \w+ wrong": "overflow in another order",
    r"cumsum\S*/special value \w+ wrong": "a running sum of negative zeros is -0",
    r"reduce_window_min\S*/ties jvp \w+ wrong": "which of equal minima has the derivative: as in reverse",
    r"remat_policy/[iu]\d+ value \w+ wrong": "a sine of a large number, of which either knows few digits",
    r"custom_vjp_numbers/\S+ vjp \w+ wrong": "a rule's cotangent becomes of its argument's dtype",
    r"while_vmapped/uint4 +hang": "the loop's limit is beyond the dtype, by JAX too",
    r"top_k_approx\S*/(special|ties) \w+ \w+ wrong": "which of equal elements, and 0 and -0, is first",
    r"remat_policy\S*/c\d+ vjp \w+ accepted": "what a checkpoint keeps of complex numbers is not rounded",
    r"sign\S*/c\d+/special (jvp|vjp) \w+ wrong": "the derivative of a complex sign at 0 is 0, not NaN",
    r"pow\S*/c\d+/special \w+ \w+ wrong": "0 to a complex power of positive real part is 0, not NaN",
    r"custom_linear_solve_inv/[iu]\d+ \w+ \w+ wrong": "of a singular matrix, whose last pivot is rounding",
    r"custom_linear_solve_cg/b?f16 \w+ \w+ wrong": "a tolerance below the rounding, so that 0 divides 0",
    r"program_rng_\w+/(i32|f32) value \w+ accepted": "random bits, which JAX cannot lower",
    r"atan2/c\d+/special \w+ \w+ wrong": "the side of a cut, which XLA's rounding decides",
    r"(sqrt|asin|acos|asinh|acosh)/c\d+/special value \w+ wrong": "the side of a cut, which JAX loses",
}
"""The reason by a pattern for "VARIANT PART EXECUTE KIND"."""


def reason(variant: str, part: str, execute: str, kind: str) -> str | None:
    """Why a finding of this kind is none, if so."""
    text = f"{variant} {part} {execute} {kind}"
    return next((why for pattern, why in EXPECTED.items() if re.fullmatch(pattern, text)), None)
