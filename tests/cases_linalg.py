"""Cases of triangular systems, factorisations and Fourier transforms.

Factorisations are fixed up to signs and phases, which differ between libraries: their cases are functions
that do not depend on these.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from casekit import Make, given, real, rows
from jax import lax

ALL = "f32 f64 c64"


def well_conditioned(*shape: int) -> Make:
    """Square matrices whose diagonals dominate."""
    entries = real(-0.5, 0.5, shape)
    return lambda rng, dtype: (entries(rng, dtype) + 2 * np.eye(shape[-1])).astype(entries(rng, dtype).dtype)


def _solve(left_side: bool, lower: bool, transpose_a: bool, conjugate_a: bool = False, unit: bool = False):
    return lambda a, b: lax.linalg.triangular_solve(
        a,
        b,
        left_side=left_side,
        lower=lower,
        transpose_a=transpose_a,
        conjugate_a=conjugate_a,
        unit_diagonal=unit,
    )


_SOLVES = [
    *rows(
        "triangular_solve",
        ALL,
        _solve(True, True, False),
        well_conditioned(3, 3),
        real(-2, 2, (3, 4)),
        active=(0, 1),
    ),
    *rows(
        "triangular_solve",
        ALL,
        _solve(False, False, True, conjugate_a=True),
        well_conditioned(2, 3, 3),
        real(-2, 2, (2, 2, 3)),
        active=(0, 1),
        name="_right",
    ),
    *rows(
        "triangular_solve",
        ALL,
        _solve(True, False, False, conjugate_a=True, unit=True),
        well_conditioned(3, 3),
        real(-2, 2, (3, 1)),
        active=(0, 1),
        name="_unit",
    ),
    *rows(
        "triangular_solve",
        "f64",
        _solve(False, True, True, unit=True),
        well_conditioned(3, 3),
        real(-2, 2, (3,)),
        active=(0, 1),
        name="_vector",
    ),
]


def _hermitian(x, lower=True):
    """The matrix that factorizations read off one triangle; JAX's rules of 0.10.2 take the operand for it."""
    strict = jnp.tril(x, -1) if lower else jnp.triu(x, 1)
    diagonal = jnp.where(jnp.eye(x.shape[-1], dtype=bool), x.real, 0).astype(x.dtype)
    return strict + jnp.conj(jnp.swapaxes(strict, -1, -2)) + diagonal


def _gram(x):
    return x @ jnp.conj(jnp.swapaxes(x, -1, -2)) + jnp.eye(x.shape[-2], dtype=x.dtype)


_CHOLESKY = [
    *rows("cholesky", ALL, lax.linalg.cholesky, well_conditioned(3, 3), active=(0,), exact=False),
    *rows(
        "cholesky",
        ALL,
        lambda x: lax.linalg.cholesky(_gram(x)),
        real(-1, 1, (2, 3, 4)),
        active=(0,),
        exact=False,
        name="_batch",
    ),
    *rows(
        "cholesky",
        "f64 c128",
        lambda x: lax.linalg.cholesky(x, symmetrize_input=False),
        well_conditioned(3, 3),
        active=(0,),
        reference=lambda x: lax.linalg.cholesky(_hermitian(x), symmetrize_input=False),
        name="_lower_only",
    ),
    *rows("cholesky", "f64", lambda x: lax.linalg.cholesky(-_gram(x)), real(-1, 1, (2, 2)), name="_fails"),
]


def _transform(kind: str, *lengths: int):
    return lambda x: lax.fft(x, kind, lengths)


_FOURIER = [
    *rows("fft", "c64 c128", _transform("fft", 6), real(-2, 2, (2, 6)), active=(0,)),
    *rows("fft", "c64 c128", _transform("ifft", 3, 5), real(-2, 2, (2, 3, 5)), active=(0,), name="_inverse"),
    *rows("fft", "f32 f64", _transform("rfft", 7), real(-2, 2, (3, 7)), active=(0,), name="_real_odd"),
    *rows("fft", "f32 f64", _transform("rfft", 3, 4), real(-2, 2, (2, 3, 4)), active=(0,), name="_real_two"),
    *rows("fft", "c64 c128", _transform("irfft", 7), real(-2, 2, (4,)), active=(0,), name="_half_odd"),
    *rows(
        "fft", "c64 c128", _transform("irfft", 3, 4), real(-2, 2, (2, 3, 3)), active=(0,), name="_half_two"
    ),
    *rows(
        "fft",
        "f32 f64",
        lambda x: jnp.abs(jnp.fft.rfft(x)) ** 2 + jnp.abs(jnp.fft.fft(x, axis=0)[0]).sum(),
        real(-2, 2, (3, 8)),
        active=(0,),
        exact=False,
        name="_spectrum",
    ),
]


def _hermitian_function(x):
    """Eigenvalues, and a function of the matrix by its eigenvectors."""
    return _spectral(*lax.linalg.eigh(x))


def _spectral(v, w):
    return w, (v * jnp.sin(w)[..., None, :]) @ jnp.conj(jnp.swapaxes(v, -1, -2)), jnp.abs(v) ** 2


def spread_apart(m: int, n: int, *batch: int) -> Make:
    """Matrices whose singular values, and eigenvalues where symmetric, are far from each other and from 0."""
    entries = real(-0.3, 0.3, (*batch, m, n))
    diagonal = np.eye(m, n) * np.arange(1, n + 1) * 1.5

    def make(rng, dtype):
        values = entries(rng, dtype)
        return (values + diagonal).astype(values.dtype)

    return make


_EIGH = [
    *rows("eigh", ALL, _hermitian_function, spread_apart(3, 3), active=(0,), exact=False),
    *rows("eigh", ALL, _hermitian_function, spread_apart(3, 3, 2), active=(0,), exact=False, name="_batch"),
    *rows(
        "eigh",
        "f64 c128",
        lambda x: lax.linalg.eigh(x + jnp.conj(x.T), lower=False, symmetrize_input=False)[1],
        spread_apart(4, 4),
        active=(0,),
        exact=False,
        name="_upper",
    ),
    *(
        case
        for lower in (True, False)
        for case in rows(
            "eigh",
            "f64 c128",
            lambda x, lower=lower: _spectral(*lax.linalg.eigh(x, lower=lower, symmetrize_input=False)),
            spread_apart(3, 3),
            active=(0,),
            exact=False,
            reference=lambda x, lower=lower: _hermitian_function(_hermitian(x, lower)),
            name=f"_{'lower' if lower else 'upper'}_only",
        )
    ),
    *rows(
        "eigh",
        "f64",
        lambda x: lax.linalg.eigh(x)[1],
        given(np.eye(3)),
        active=(0,),
        exact=False,
        name="_equal",
    ),
]


def _pivoted(x):
    return lax.linalg.qr(x, pivoting=True, full_matrices=False)


def _in_order_of_pivots(x):
    """JAX's rule of 0.10.2 fails for batches, and takes a wide matrix's last columns as they were."""
    order = lax.linalg.qr(lax.stop_gradient(x), pivoting=True)[2]
    x = jnp.take_along_axis(x, order[..., None, :], axis=-1)
    return (*lax.linalg.qr(x, full_matrices=False), order)


_QR = [
    *rows("qr", ALL, lambda x: lax.linalg.qr(x, full_matrices=False), spread_apart(4, 3), active=(0,)),
    *rows("qr", "f64 c128", lax.linalg.qr, spread_apart(3, 3, 2), active=(0,), name="_batch"),
    *rows(
        "qr",
        "f64 c128",
        lambda x: lax.linalg.qr(x, full_matrices=False),
        spread_apart(2, 4),
        active=(0,),
        name="_wide",
    ),
    *rows("qr", "f64 c128", lax.linalg.qr, spread_apart(4, 2), active=(0,), name="_full"),
    *rows("qr", "f32 f64 c128", _pivoted, spread_apart(4, 3), active=(0,), name="_pivoted"),
    *rows(
        "qr",
        "f64",
        _pivoted,
        spread_apart(3, 3, 2),
        active=(0,),
        reference=_in_order_of_pivots,
        name="_pivoted_batch",
    ),
    *rows(
        "qr",
        "f64 c128",
        _pivoted,
        spread_apart(2, 4),
        active=(0,),
        reference=_in_order_of_pivots,
        name="_pivoted_wide",
    ),
]


def _thin(x):
    """Singular values, and a function of the singular vectors that does not depend on their phases."""
    u, s, vh = lax.linalg.svd(x, full_matrices=False)
    return s, (u * jnp.sin(s)[..., None, :]) @ vh, jnp.abs(u) ** 2, jnp.abs(vh) ** 2


_SVD = [
    *(
        case
        for shape in ((3, 3), (4, 2), (2, 3, 2))
        for case in rows(
            "svd",
            ALL,
            _thin,
            spread_apart(*shape),
            active=(0,),
            exact=False,
            name="_" + "x".join(map(str, shape)),
        )
    ),
    *rows(
        "svd",
        "f64 c128",
        lambda x: lax.linalg.svd(x, compute_uv=False),
        spread_apart(3, 2),
        active=(0,),
        name="_values",
    ),
    *rows("svd", "f64", _thin, given(np.diag([2.0, 2, 1])), active=(0,), exact=False, name="_equal"),
    *rows("svd", "f64", _thin, given(np.diag([2.0, 1, 0])), active=(0,), exact=False, name="_zero"),
    *rows(
        "svd",
        "f64",
        lambda x: jnp.abs(lax.linalg.svd(x, full_matrices=True)[2][:2]),
        spread_apart(2, 3),
        exact=False,
        name="_full",
    ),
]

CASES = [*_SOLVES, *_CHOLESKY, *_EIGH, *_QR, *_SVD, *_FOURIER]
