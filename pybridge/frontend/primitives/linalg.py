"""Products of arrays, triangular systems and factorisations."""

from __future__ import annotations

from jax import lax

from ...errors import ProgramTypeError, UnsupportedPrimitive
from ...ir.numerals import DTYPES, dtype_name
from .. import portable
from ..adapter import internals
from .spec import Spec, dims, integers


def _precision_text(precision) -> str | None:
    """`default`, `high`, `highest`, the name of an algorithm preset, or a pair as `high,default`."""
    if precision is None:
        return None
    if isinstance(precision, tuple):
        left, right = (_precision_text(p) for p in precision)
        return left if left == right else f"{left},{right}"
    if isinstance(precision, lax.Precision):
        return precision.name.lower()
    if isinstance(precision, lax.DotAlgorithmPreset):
        return precision.name
    raise UnsupportedPrimitive(f"dot_general with precision={precision}", primitive="dot_general")


def _precision(text: str | None):
    if text is None:
        return None
    try:
        if "," in text:
            left, right = text.split(",")
            return lax.Precision[left.upper()], lax.Precision[right.upper()]
        return lax.Precision[text.upper()] if text.islower() else lax.DotAlgorithmPreset[text]
    except (KeyError, ValueError):
        raise ProgramTypeError(f"dot_general has no precision {text!r}") from None


def _dot_general(x, y, *, lhs_contract, rhs_contract, lhs_batch, rhs_batch, dtype, precision):
    dimension_numbers = ((lhs_contract, rhs_contract), (lhs_batch, rhs_batch))
    return lax.dot_general(
        x, y, dimension_numbers, precision=_precision(precision), preferred_element_type=DTYPES[dtype]
    )


def _products(eqn):
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = eqn.params["dimension_numbers"]
    return {
        "lhs_contract": integers(lhs_contract),
        "rhs_contract": integers(rhs_contract),
        "lhs_batch": integers(lhs_batch),
        "rhs_batch": integers(rhs_batch),
        "dtype": dtype_name(eqn.outvars[0].aval.dtype),
        "precision": _precision_text(eqn.params["precision"]),
    }


_SOLVE_ATTRS = ("left_side", "lower", "transpose_a", "conjugate_a", "unit_diagonal")


def _cholesky(x):
    """Symmetrizing the operand, where it was asked for, is in equations of its own."""
    return lax.linalg.cholesky(x, symmetrize_input=False)


def _eigh(x, *, lower, sort_eigenvalues):
    return lax.linalg.eigh(x, lower=lower, sort_eigenvalues=sort_eigenvalues, symmetrize_input=False)


def _qr(x, *, pivoting, full_matrices):
    return lax.linalg.qr(x, pivoting=pivoting, full_matrices=full_matrices)


def _portable_qr(x, *, pivoting, full_matrices):
    if pivoting:  # refused where the custom call is seen
        return _qr(x, pivoting=True, full_matrices=full_matrices)
    return portable.qr(x, full_matrices=full_matrices)


def _svd(x, *, full_matrices, compute_uv):
    found = lax.linalg.svd(x, full_matrices=full_matrices, compute_uv=compute_uv)
    if not compute_uv:
        return found
    u, s, vh = found
    return s, u, vh


def _lu_pivots_to_permutation(pivots, *, size):
    return lax.linalg.lu_pivots_to_permutation(pivots, size)


def _eig(x, *, left, right, vector_derivatives):
    return lax.linalg.eig(
        x,
        compute_left_eigenvectors=left,
        compute_right_eigenvectors=right,
        enable_eigvec_derivs=vector_derivatives,
    )


def _eig_attrs(eqn):
    return {
        "left": bool(eqn.params["compute_left_eigenvectors"]),
        "right": bool(eqn.params["compute_right_eigenvectors"]),
        "vector_derivatives": bool(eqn.params["enable_eigvec_derivs"]),
    }


def _schur(x, *, vectors):
    t, *z = lax.linalg.schur(x, compute_schur_vectors=vectors)
    return [t, *z][: 1 + vectors]


def _schur_attrs(eqn):
    if eqn.params.get("sort_eig_vals") or eqn.params.get("select_callable") is not None:
        raise UnsupportedPrimitive("schur with sorted eigenvalues", primitive="schur")
    return {"vectors": bool(eqn.params["compute_schur_vectors"])}


def _tridiagonal_solve(lower, diagonal, upper, b):
    return lax.linalg.tridiagonal_solve(lower, diagonal, upper, b)


def _flags(*names: str):
    """Reads parameters that are true or false; the primitive's others must be at their defaults."""

    def read(eqn):
        for name, value in eqn.params.items():
            if name not in names and value is not None and value is not False:
                raise UnsupportedPrimitive(
                    f"{eqn.primitive} with {name}={value}", primitive=str(eqn.primitive)
                )
        return {name: bool(eqn.params[name]) for name in names}

    return read


SPECS = [
    Spec(
        "dot_general",
        _dot_general,
        _products,
    ),
    Spec(
        "triangular_solve",
        lax.linalg.triangular_solve,
        _flags(*_SOLVE_ATTRS),
        portable=portable.triangular_solve,
    ),
    Spec("cholesky", _cholesky, portable=portable.cholesky),
    Spec("eigh", _eigh, _flags("lower", "sort_eigenvalues"), portable=portable.eigh),
    Spec("qr", _qr, _flags("pivoting", "full_matrices"), portable=_portable_qr),
    Spec("geqrf", internals.geqrf, read=_flags(), portable=portable.geqrf),
    Spec("geqp3", internals.geqp3, read=_flags()),
    Spec("ormqr", lax.linalg.ormqr, _flags("left", "transpose"), portable=portable.ormqr),
    Spec("lu", lax.linalg.lu, portable=portable.lu),
    Spec(
        "lu_pivots_to_permutation",
        _lu_pivots_to_permutation,
        lambda eqn: {"size": dims([eqn.params["permutation_size"]])[0]},
        portable=portable.lu_pivots_to_permutation,
    ),
    Spec("eig", _eig, _eig_attrs),
    Spec("hessenberg", lax.linalg.hessenberg),
    Spec("schur", _schur, _schur_attrs),
    Spec("tridiagonal", lax.linalg.tridiagonal, _flags("lower")),
    Spec(
        "householder_product",
        lax.linalg.householder_product,
        portable=portable.householder_product,
    ),
    Spec(
        "tridiagonal_solve",
        _tridiagonal_solve,
        read=_flags(),
        portable=portable.tridiagonal_solve,
    ),
    Spec("svd", _svd, _flags("full_matrices", "compute_uv"), portable=portable.svd),
]
