"""Every exception pybridge raises. All derive from `PyBridgeError`; each says what to do next."""

from __future__ import annotations

import os
import pickle


class PyBridgeError(Exception):
    """Base of all pybridge errors."""


class UnsupportedPrimitive(PyBridgeError, NotImplementedError):
    """A traced function uses an operation that the Program language or an engine lacks.

    Raised before anything runs. `primitive` is its name, `source` the user's line (`file:line (function)`).
    """

    def __init__(self, message: str, *, primitive: str = "", source: str = ""):
        super().__init__(message)
        self.primitive = primitive
        self.source = source


class KernelRefused(UnsupportedPrimitive):
    """Julia's native code of a Program would end the process: it calls what no thread of XLA's may call.

    A mistake of JaxprAD's, found before the code is registered. `primitive` and `source` are those of the
    equation that it is of, if it is of one.
    """


class TracingError(PyBridgeError):
    """JAX could not trace the function; the message carries JAX's reason."""


class SideEffectError(PyBridgeError):
    """The function has side effects (callbacks, prints, mutable references); a Program is pure."""


class UnknownOption(PyBridgeError, ValueError):
    """An engine, execute mode or other option that does not exist."""


class UnsupportedJax(PyBridgeError, ImportError):
    """The installed JAX is older than pybridge supports, or has moved what pybridge takes from it."""


class EngineUnavailable(PyBridgeError):
    """The engine exists but cannot work here; the message says what to install."""


class NotDifferentiable(PyBridgeError, TypeError):
    """There is no such derivative: of integer inputs, or in reverse mode through an unbounded loop."""


class WrongDerivative(PyBridgeError, ArithmeticError):
    """A derivative is not the slope of the function's own values; only with `verify=True`."""


class ArgumentError(PyBridgeError, TypeError):
    """Arguments whose number, structure, shape or dtype do not fit the Program."""


class DensePattern(PyBridgeError, ValueError):
    """A sparse derivative whose pattern is too dense to be written down or coloured, as far as can be shown.

    `source` is the user's line (`file:line (function)`) behind which it is dense, where that is known.
    """

    def __init__(self, message: str, *, source: str = ""):
        super().__init__(message)
        self.source = source


class WrongPattern(PyBridgeError, ValueError):
    """A sparsity pattern lacks entries of the derivative, or has another shape than it."""


class PrecisionUnreachable(PyBridgeError, ValueError):
    """Not even in 64 bits does a function keep the error asked for: `bound` is above `error`, relatively."""

    def __init__(self, message: str, *, bound: float = 0.0, error: float = 0.0):
        super().__init__(message)
        self.bound = bound
        self.error = error


class NotPicklable(PyBridgeError, pickle.PicklingError):
    """What means nothing in another process, such as an object that lives in this process's Julia."""


class ProgramSyntaxError(PyBridgeError, ValueError):
    """Text that is not a Program; the message names line and column."""


class ProgramVersionError(ProgramSyntaxError):
    """Program text written by a newer pybridge than this one."""


class ProgramTypeError(PyBridgeError, TypeError):
    """A Program that parses but is ill-typed."""


class ArchiveError(PyBridgeError, ValueError):
    """A file that is no archive of a Program, is damaged or of a newer pybridge; or what no archive can hold.

    `path` is the file.
    """

    def __init__(self, message: str, *, path: str | os.PathLike[str] = ""):
        super().__init__(message)
        self.path = os.fspath(path)


class JuliaNotFound(PyBridgeError):
    """No Julia on this machine, as far as the documented search order sees."""


class JuliaUnusable(JuliaNotFound):
    """A Julia was found but is too old or broken; the message names its path, version and the remedy."""


class JuliaBusy(PyBridgeError):
    """Julia still runs a function of the user's that was interrupted, and takes no other call until it ends.

    The message says which, and since when. A function that calls `JaxprAD.check_cancelled()` now and then
    ends there.
    """


class JuliaError(PyBridgeError):
    """An error raised inside Julia. `kind` is Julia's exception type, `stacktrace` Julia's own trace."""

    def __init__(self, message: str, *, kind: str = "", stacktrace: str = ""):
        super().__init__(message)
        self.kind = kind
        self.stacktrace = stacktrace


class JuliaTracingError(JuliaError, TracingError):
    """A Julia function that cannot be traced to a Program, for `julia_function(..., engine="transpose")`.

    `kind` says what its code does: `TracedControlFlow`, `TracedConversion`, `EscapedTracer`, `GlobalChanged`,
    or `TracingFailed` for all else. `source` is the line, `model.jl:12 (step)`, where it is known.
    """

    def __init__(self, message: str, *, kind: str = "", stacktrace: str = "", source: str = ""):
        super().__init__(message, kind=kind, stacktrace=stacktrace)
        self.source = source


class LibraryError(PyBridgeError):
    """No library for C can be made: there is no linker, or the code cannot be in a file."""


class EnzymeError(JuliaError):
    """Enzyme.jl cannot differentiate it; the message is Enzyme's."""


class ForkedProcess(PyBridgeError):
    """Julia or its kernels were in use when this process was forked; neither works in the child."""
