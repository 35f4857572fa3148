"""pybridge: the bridge between JAX and Julia's automatic differentiation.

Importing it starts nothing: Julia starts at the first use that needs it.
"""

from .bridge import bridge
from .compare import Comparison, compare
from .doctor import doctor
from .errors import (
    ArgumentError,
    EngineUnavailable,
    EnzymeError,
    ForkedProcess,
    JuliaError,
    JuliaNotFound,
    JuliaUnusable,
    NotDifferentiable,
    NotPicklable,
    ProgramSyntaxError,
    ProgramTypeError,
    ProgramVersionError,
    PyBridgeError,
    SideEffectError,
    TracingError,
    UnknownOption,
    UnsupportedJax,
    UnsupportedPrimitive,
)
from .exporting import export
from .functions import JuliaFunction, julia_function
from .parser import parse
from .program import Program
from .tracing import trace
from .transforms import Linearization

__all__ = [
    "ArgumentError",
    "Comparison",
    "EngineUnavailable",
    "EnzymeError",
    "ForkedProcess",
    "JuliaError",
    "JuliaFunction",
    "JuliaNotFound",
    "JuliaUnusable",
    "Linearization",
    "NotDifferentiable",
    "NotPicklable",
    "Program",
    "ProgramSyntaxError",
    "ProgramTypeError",
    "ProgramVersionError",
    "PyBridgeError",
    "SideEffectError",
    "TracingError",
    "UnknownOption",
    "UnsupportedJax",
    "UnsupportedPrimitive",
    "bridge",
    "compare",
    "doctor",
    "export",
    "julia_function",
    "parse",
    "trace",
]
