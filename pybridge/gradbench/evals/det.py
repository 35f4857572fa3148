"""The determinant by expansion by minors, whose work is the factorial of the size, and its gradient."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ...errors import ArgumentError
from ..function import Bridge, Function, Operands, plain
from ..inputs import Input

AT_ONCE = 6
"""The size up to which the minors of all matrices of a batch are one batch: 6! numbers stay in a cache.

Those of larger matrices are done one after the other, and again in the derivative, which otherwise would keep
some numbers for each of the products, of which a matrix of 11 rows has forty million.
"""


def determinant(a: jax.Array) -> jax.Array:
    """Of each matrix in a batch, along its first row; of one matrix alone where it is large."""
    size = a.shape[-1]
    if size == 1:
        return a[..., 0, 0]
    signs = 1.0 - 2.0 * (jnp.arange(size) % 2)
    terms = signs * a[..., 0, :]
    if size <= AT_ONCE:
        return jnp.sum(terms * determinant(minors(a)), axis=-1)
    return jnp.sum(terms * jax.lax.map(jax.checkpoint(determinant), minors(a)))


def minors(a: jax.Array) -> jax.Array:
    """Without the first row and one column, for each column: those before it stay, those after it move up."""
    size = a.shape[-1]
    before = jnp.arange(size - 1) < jnp.arange(size)[:, None]
    rows = a[..., None, 1:, :]
    return jnp.where(before[:, None, :], rows[..., :-1], rows[..., 1:])


def _read(value: Input) -> Operands:
    size = value.at("ell").integer(at_least=1)
    elements = value.at("A").floats(None)
    if elements.size != size**2:
        raise ArgumentError(
            f"input.A has {elements.size} elements, and a matrix of {size} rows has {size**2}"
        )
    return Operands((elements.reshape(size, size),))


def _flat(matrix: jax.Array) -> list[float]:
    return plain(matrix.ravel())


def functions(bridge: Bridge) -> dict[str, Function]:
    bridged = bridge(determinant)
    return {
        "primal": Function(bridged, _read, plain),
        "gradient": Function(jax.grad(bridged), _read, _flat),
    }
