"""Julia functions as JAX functions."""

from .api import JuliaFunction, backends, julia_function

__all__ = ["JuliaFunction", "backends", "julia_function"]
