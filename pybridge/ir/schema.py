"""The closed set of primitives: for each its attributes, in the order in which they are printed.

docs/program.md says what each computes. `frontend/primitives` has what each is in JAX, and JaxprAD in Julia
its rules.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Operation:
    """One primitive of Programs.

    attributes: their names, in print order.
    elementwise: operands are broadcast to the shape of the result; a literal may stand for an array.
    """

    name: str
    attributes: tuple[str, ...] = ()
    elementwise: bool = False

    def missing(self, given: Container[str]) -> list[str]:
        """The attributes that an equation lacks; a constant has one of its two."""
        lacking = [name for name in self.attributes if name not in given]
        return lacking if self.name != "constant" or len(lacking) != 1 else []


def names(text: str) -> tuple[str, ...]:
    """A family in one line: names separated by white space."""
    return tuple(text.split())


UNARY = names(
    """
    neg sign floor ceil is_finite exp exp2 log log2 expm1 log1p tanh logistic sin cos tan asin acos atan sinh
    cosh asinh acosh atanh sqrt rsqrt cbrt square one_minus_square erf erfc erf_inv lgamma digamma bessel_i0e
    bessel_i1e abs real imag conj not population_count clz stop_gradient copy
    """
)
BINARY = names(
    """
    add sub mul div rem pow max min atan2 nextafter and or xor shift_left shift_right_arithmetic
    shift_right_logical eq ne lt le gt ge complex mulhi igamma igammac igamma_grad_a polygamma zeta
    """
)
"""Elementwise primitives without attributes, of one operand and of two."""

_ELEMENTWISE = {
    "regularized_incomplete_beta": "",
    "select_n": "",
    "clamp": "",
    "round": "method",
    "integer_pow": "y",
    "reduce_precision": "exponent_bits mantissa_bits",
    "convert_element_type": "dtype",
    "threefry2x32": "",
}

_GATHER = "offset_dims collapsed_slice_dims start_index_map operand_batching_dims start_indices_batching_dims"
_SCATTER = (
    "update_window_dims inserted_window_dims scatter_dims_to_operand_dims operand_batching_dims "
    "scatter_indices_batching_dims mode sorted unique"
)
_WINDOW = "window strides low high base_dilation window_dilation"

_STRUCTURED = {
    "bitcast_convert_type": "dtype",
    # shapes
    "broadcast_in_dim": "shape dims",
    "reshape": "shape",
    "squeeze": "dims",
    "transpose": "perm",
    "rev": "dims",
    "concatenate": "dim",
    "pad": "low high interior",
    "slice": "start limit strides",
    "split": "axis sizes",
    "iota": "dtype shape dim",
    "constant": "value ref",
    "dim_size": "dim dtype",
    "optimization_barrier": "",
    # indexing
    "dynamic_slice": "sizes",
    "dynamic_update_slice": "",
    "gather": f"{_GATHER} slice_sizes mode fill_value sorted unique",
    **dict.fromkeys(("scatter", "scatter_add", "scatter_sub", "scatter_mul"), _SCATTER),
    **dict.fromkeys(("scatter_min", "scatter_max"), _SCATTER),
    # reductions and sorting
    **dict.fromkeys(("reduce_sum", "reduce_prod", "reduce_max", "reduce_min"), "axes"),
    **dict.fromkeys(("reduce_and", "reduce_or", "reduce_xor"), "axes"),
    **dict.fromkeys(("argmax", "argmin"), "axis dtype"),
    **dict.fromkeys(("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"), "axis reverse"),
    "sort": "dim stable num_keys",
    "top_k": "k axis",
    # linear algebra
    "dot_general": "lhs_contract rhs_contract lhs_batch rhs_batch dtype precision",
    "triangular_solve": "left_side lower transpose_a conjugate_a unit_diagonal",
    "cholesky": "",
    "eigh": "lower sort_eigenvalues",
    "qr": "pivoting full_matrices",
    "geqrf": "",
    "geqp3": "",
    "ormqr": "left transpose",
    "lu": "",
    "lu_pivots_to_permutation": "size",
    "eig": "left right vector_derivatives",
    "hessenberg": "",
    "schur": "vectors",
    "tridiagonal": "lower",
    "householder_product": "",
    "tridiagonal_solve": "",
    "svd": "full_matrices compute_uv",
    # Fourier transforms and windows
    "fft": "fft_type fft_lengths",
    "conv_general_dilated": (
        "strides low high lhs_dilation rhs_dilation lhs_spec rhs_spec out_spec feature_groups batch_groups "
        "dtype precision"
    ),
    **dict.fromkeys(("reduce_window_sum", "reduce_window_max", "reduce_window_min"), _WINDOW),
    "select_and_gather_add": f"select {_WINDOW}",
    "select_and_scatter_add": "select window strides low high",
    # nested Programs
    "remat": "body barrier",
    "saveable": "levels",
    "cond": "branches",
    "scan": "length reverse consts carry unroll body",
    "while": "cond_consts body_consts bound cond body",
    "while_passes": "cond_consts consts carry bound cond passes",
    "custom_jvp": "call jvp",
    "custom_vjp": "call fwd bwd",
    "custom_vjp_tangent": "bwd residuals",
    "custom_linear_solve": "consts matvec vecmat solve transpose_solve",
    "linear_call": "residuals call transpose",
}

ADDED: dict[str, dict[str, Any]] = {"while_passes": {"bound": None}}
"""By primitive the attributes that texts of before lack, with what they would have."""

DERIVATIVE_RULES = frozenset({"jvp", "fwd", "bwd", "matvec", "vecmat", "transpose_solve", "transpose"})
"""Attributes that hold a derivative rule, which does not run when the equation does."""


def _operations() -> dict[str, Operation]:
    elementwise = dict.fromkeys((*UNARY, *BINARY), "") | _ELEMENTWISE
    return {
        name: Operation(name, names(attributes), name in elementwise)
        for name, attributes in (elementwise | _STRUCTURED).items()
    }


OPERATIONS: dict[str, Operation] = _operations()
"""By name."""
