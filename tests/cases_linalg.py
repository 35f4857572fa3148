"""Cases of triangular systems, factorisations and Fourier transforms.

Factorisations are fixed up to signs and phases, and these differ between libraries: their cases are functions that do not.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from casekit import Make, real, rows
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
        "f64",
        lambda x: lax.linalg.cholesky(x, symmetrize_input=False),
        well_conditioned(3, 3),
        active=(0,),
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

CASES = [*_SOLVES, *_CHOLESKY, *_FOURIER]
