"""Julia functions as JAX functions."""

from .face import JuliaFunction, julia_function

__all__ = ["JuliaFunction", "julia_function"]
