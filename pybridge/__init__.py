"""pybridge: the bridge between JAX and Julia's automatic differentiation.

Importing it starts nothing and imports no JAX: each name is imported when it is first used, and Julia starts
at the first use that needs it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    __version__: str
    from .api.bridge import bridge
    from .api.doctor import doctor
    from .api.export import export
    from .api.library import CLibrary, compile_library
    from .comparison import Blame, Check, Comparison, Mixed, blame, check, compare, mixed
    from .errors import (
        ArchiveError,
        ArgumentError,
        DensePattern,
        EngineUnavailable,
        EnzymeError,
        ForkedProcess,
        JuliaBusy,
        JuliaError,
        JuliaNotFound,
        JuliaTracingError,
        JuliaUnusable,
        KernelRefused,
        LibraryError,
        NotDifferentiable,
        NotPicklable,
        PrecisionUnreachable,
        ProgramSyntaxError,
        ProgramTypeError,
        ProgramVersionError,
        PyBridgeError,
        SideEffectError,
        TracingError,
        UnknownOption,
        UnsupportedJax,
        UnsupportedPrimitive,
        WrongDerivative,
        WrongPattern,
    )
    from .foreign.casadi import casadi_function
    from .foreign.pytorch import torch_function
    from .frontend.tracing import trace
    from .functions import JuliaFunction, julia_function
    from .ir.program import Program
    from .runtime.archives import load, save
    from .runtime.reading import parse
    from .runtime.transforms import Linearization
    from .sparse import SparseDerivative, SparsePlan, SparsityPattern, sparse_hessian, sparse_jacobian

__all__ = [
    "ArchiveError",
    "ArgumentError",
    "Blame",
    "CLibrary",
    "Check",
    "Comparison",
    "DensePattern",
    "EngineUnavailable",
    "EnzymeError",
    "ForkedProcess",
    "JuliaBusy",
    "JuliaError",
    "JuliaFunction",
    "JuliaNotFound",
    "JuliaTracingError",
    "JuliaUnusable",
    "KernelRefused",
    "LibraryError",
    "Linearization",
    "Mixed",
    "NotDifferentiable",
    "NotPicklable",
    "PrecisionUnreachable",
    "Program",
    "ProgramSyntaxError",
    "ProgramTypeError",
    "ProgramVersionError",
    "PyBridgeError",
    "SideEffectError",
    "SparseDerivative",
    "SparsePlan",
    "SparsityPattern",
    "TracingError",
    "UnknownOption",
    "UnsupportedJax",
    "UnsupportedPrimitive",
    "WrongDerivative",
    "WrongPattern",
    "blame",
    "bridge",
    "casadi_function",
    "check",
    "compare",
    "compile_library",
    "doctor",
    "export",
    "julia_function",
    "load",
    "mixed",
    "parse",
    "save",
    "sparse_hessian",
    "sparse_jacobian",
    "torch_function",
    "trace",
]

_PLACES = {
    "bridge": "api.bridge",
    "doctor": "api.doctor",
    "export": "api.export",
    "CLibrary": "api.library",
    "compile_library": "api.library",
    "Blame": "comparison",
    "blame": "comparison",
    "Check": "comparison",
    "check": "comparison",
    "Comparison": "comparison",
    "compare": "comparison",
    "Mixed": "comparison",
    "mixed": "comparison",
    "casadi_function": "foreign.casadi",
    "torch_function": "foreign.pytorch",
    "trace": "frontend.tracing",
    "JuliaFunction": "functions",
    "julia_function": "functions",
    "load": "runtime.archives",
    "save": "runtime.archives",
    "parse": "runtime.reading",
    "Program": "ir.program",
    "Linearization": "runtime.transforms",
    "SparseDerivative": "sparse",
    "SparsePlan": "sparse",
    "SparsityPattern": "sparse",
    "sparse_hessian": "sparse",
    "sparse_jacobian": "sparse",
}
"""The modules of the public names; those not here are exceptions."""


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from .distribution import version

        return version()
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f"{__name__}.{_PLACES.get(name, 'errors')}")
    value = globals()[name] = getattr(module, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
