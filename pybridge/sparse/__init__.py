"""Sparse Jacobians and Hessians: patterns from Programs, colourings, and batches of products."""

from ._derivative import SparseDerivative, sparse_hessian, sparse_jacobian
from ._pattern import SparsityPattern
from ._plan import SparsePlan

__all__ = ["SparseDerivative", "SparsePlan", "SparsityPattern", "sparse_hessian", "sparse_jacobian"]
