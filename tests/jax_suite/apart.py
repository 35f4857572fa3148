"""Tests of JAX that cannot hold for bridged functions, with the reason. They are not run."""

from __future__ import annotations

import re

_APPLY = (
    "says that JAX cannot differentiate x.at[i].apply(f); "
    "bridged, it has both derivatives, which tests/cases_arrays.py has cases of"
)
_BATCHING = (
    "its rule for vmap is of another function, of another shape or value, and where values or tangents alone "
    "are batched JAX makes another mixture of both"
)
_TEXT = "looks at the text of a jaxpr or of an error, which of Programs is another"
_TRACED = "bridged functions are traced, and under jax.jit JAX refuses this too"
_CONSTANT = (
    "its rule gives a tangent that does not depend on the tangents, of which the derivative is zero, as in "
    "jax.linearize (docs/limits.md)"
)
_LOGS = "logs of rules are not kept (docs/limits.md)"
_NUMBERS = "says that a result is a number of Python's; those of bridged and jitted functions are arrays"

APART: dict[str, dict[str, str]] = {
    "lax_autodiff_test": {
        "testGatherTransposeCotangentDtype": (
            "says that a custom rule's cotangent may have another dtype than its primal, and so a gradient; "
            "those of Programs have the primal's (tests/api/test_bridge.py)"
        ),
        "test_scatter_apply_jvp": _APPLY,
        "test_scatter_apply_vjp": _APPLY,
    },
    "custom_api_test": {
        "test_(float0|symbolic_zero_custom_jvp(_jit)?(_vmap)?)": _CONSTANT,
        "test_symbolic_zero_custom_vjp": _NUMBERS,
        "test_(closure_with_vmap2|nondiff_argnums_vmap_tracer|hard_stuff2|nondiff_arg_vmap_tracer)": _TRACED,
        "test_(nondiff_argnums_unhashable|python_control_flow_bwd|closure_convert_mixed_consts)": _TRACED,
        "test_(custom_gradient|defvjp)_with_logs(_nondiff_argnums_and_none_logs)?": _LOGS,
        "test_custom_lin_pretty_print": _TEXT,
        "test_closed_over_tracer3": "says that JAX refuses the rule, which works bridged",
        "test_partial_eval_raises": "says that JAX cannot differentiate the function, which works bridged",
        "test_closed_over_tracers?_error(_message)?": _TEXT,
        "test_(jvp_rule_doesnt_return_pair_error_message|nondiff_arg_hiding_jvp_tracer|jvp_error)": _TEXT,
        "test_jvp_(closure|extra_batched_primals|extra_batched_tangents|dataflow_violation)": _BATCHING,
    },
    "custom_linear_solve_test": {"test_custom_linear_solve_without_transpose_solve": _TEXT},
    "ode_test": {"test_forward_mode_error": _TEXT},
    "lax_control_flow_test": {
        "testWhileGradError.*": (
            "says that while loops have no reverse mode, which Programs have natively, or by a bound"
        ),
        "test_platform_dependent_with_non_existent_custom_call": _TRACED,
    },
    "lax_numpy_test": {"testWhereExtraCode": _TEXT},
    "nn_test": {"testDotProductAttention(13|15|17|19|21|23)": _TRACED},  # of float16
}
"""By module and test."""

NATIVE: dict[str, dict[str, str]] = {
    "lax_control_flow_test": {
        "test_platform_dependent_grad": "looks for a product in XLA's text, which is in a native kernel",
    },
}
"""Those that hold by XLA's operations alone."""


def reason(module: str, test: str, execute: str) -> str | None:
    """Why the test is apart, if it is; absl numbers the cases of a parametrised test."""
    tests = APART.get(module, {}) | (NATIVE.get(module, {}) if execute == "julia" else {})
    return next((why for name, why in tests.items() if re.fullmatch(rf"{name}\d*", test)), None)
