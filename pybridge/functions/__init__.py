"""Julia functions as JAX functions."""

from .api import JuliaFunction, julia_function

__all__ = ["JuliaFunction", "julia_function"]
