"""Linear algebra in operations of StableHLO alone, for exports that every platform's XLA compiles.

Of these operations JAX makes calls into a platform's library (LAPACK, cuSOLVER), which only a process with
that library can run. Matrices stand in the last two axes, as in `jax.lax.linalg`.
"""

from .eigen import eigh
from .lu import lu, lu_pivots_to_permutation
from .operations import cholesky, triangular_solve
from .qr import geqrf, householder_product, ormqr, qr
from .svd import svd
from .tridiagonal import tridiagonal_solve

__all__ = [
    "cholesky",
    "eigh",
    "geqrf",
    "householder_product",
    "lu",
    "lu_pivots_to_permutation",
    "ormqr",
    "qr",
    "svd",
    "triangular_solve",
    "tridiagonal_solve",
]
