"""Operations that read one triangle of their operand, against finite differences.

Of such an operand any direction is possible, and there JAX is no reference: its cholesky up to 0.10, and its
eigh, take the whole tangent for what is read.
"""

from __future__ import annotations

import itertools

import jax
import numpy as np
import pytest
from agreement import assert_agree
from casekit import computed, direction
from covering import covering
from jax import lax

import pybridge as pb


def _cholesky(x):
    return lax.linalg.cholesky(x, symmetrize_input=False)


def _eigenvalues(lower):
    return lambda x: lax.linalg.eigh(x, lower=lower, symmetrize_input=False)[1]


def _projectors(lower):
    """Of each eigenvector what does not depend on its phase."""

    def f(x):
        v, _ = lax.linalg.eigh(x, lower=lower, symmetrize_input=False)
        return v[:, None, :] * v.conj()[None, :, :]

    return f


def _solution(lower, unit):
    return lambda x: lax.linalg.triangular_solve(
        x, x[:, :1] + 1, left_side=True, lower=lower, unit_diagonal=unit
    )


FUNCTIONS = {
    "cholesky": _cholesky,
    "eigh_lower": _eigenvalues(True),
    "eigh_upper": _eigenvalues(False),
    "eigh_lower_vectors": _projectors(True),
    "eigh_upper_vectors": _projectors(False),
    "triangular_solve_lower": _solution(True, False),
    "triangular_solve_upper_unit": _solution(False, True),
}


def _central_difference(f, x, dx):
    """Of the best order that float64 allows: Richardson's extrapolation of two steps."""
    h = 1e-3
    wide, near = ((f(x + k * dx) - f(x - k * dx)) / (2 * k) for k in (2 * h, h))
    return (4 * near - wide) / 3


WAYS = list(itertools.product(["float64", "complex128"], ["julia", "xla"]))


@pytest.mark.parametrize(
    ("name", "dtype", "execute"), [(name, *way) for name, way in covering(FUNCTIONS, WAYS, least=1)]
)
def test_derivatives_where_one_triangle_is_read(name, dtype, execute, x64):
    f, rng = FUNCTIONS[name], np.random.default_rng(11)
    like = np.zeros((4, 4), dtype)
    x = direction(rng, like) * 0.4 + np.diag([2.0, 4.0, 6.0, 8.0])
    dx = direction(rng, like)
    g = pb.bridge(f, execute=execute)
    shape = jax.eval_shape(f, x)
    ct = direction(rng, np.zeros(shape.shape, shape.dtype))
    expected, found, cotangent = computed(
        [
            lambda x, dx: _central_difference(f, x, dx),
            lambda x, dx: jax.jvp(g, (x,), (dx,))[1],
            lambda x, ct: jax.vjp(g, x)[1](ct)[0],
        ],
        [(x, dx), (x, dx), (x, ct)],
    )
    assert_agree(found, expected, "jvp", 1e-8)
    # JAX's pairing does not conjugate.
    assert_agree(np.sum(np.real(cotangent * dx)), np.sum(np.real(ct * expected)), "vjp", 1e-8)
