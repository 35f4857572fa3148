"""From Python functions to Programs."""

from __future__ import annotations

import functools
import re
import traceback
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax

from ..errors import ArgumentError, PyBridgeError, TracingError, UnknownOption
from ..ir.deferred import expanded
from ..ir.program import Program
from ..ir.while_bounds import bounded
from .adapter import jaxprs, references, source
from .lowering import lower
from .names import argument_names, function_name
from .static_arguments import Argnames, Argnums, Fixed, static_arguments
from .structures import structure_of_call


def trace(
    f: Callable,
    *,
    static_argnums: Argnums = None,
    static_argnames: Argnames = None,
    while_bound: int | None = None,
) -> Callable[..., Program]:
    """`trace(f)(*args, **kwargs)` is the Program of `f` for arguments of those shapes and dtypes.

    Arguments are pytrees of arrays, numbers or `jax.ShapeDtypeStruct`s, whose dimensions may be symbolic
    (`jax.export.symbolic_shape`). Those that `static_argnums` and `static_argnames` name, as for `jax.jit`,
    are closed over: the Program is called without them. `while_bound` is a promise about the trips of every
    `lax.while_loop`, as for `bridge`.

    Raises TracingError, with JAX's reason and the user's line, where JAX cannot trace `f`;
    UnsupportedPrimitive for an operation that Programs lack; SideEffectError for callbacks, prints and
    mutable references. Exceptions of the user's own classes pass through.
    """
    if not callable(f):
        raise ArgumentError(f"trace takes a function, got {type(f).__name__}")
    static = static_arguments(f, static_argnums, static_argnames)
    check_bound(while_bound)

    @functools.wraps(f)
    def traced(*args, **kwargs) -> Program:
        names = argument_names(f, len(args))
        args, kwargs, fixed = static.split(args, kwargs)
        jaxpr, out_tree = closed_trace(f, args, kwargs, fixed)
        given = [name for i, name in enumerate(names) if i not in fixed.positions]
        structure = structure_of_call(given, args, kwargs, out_tree)
        program = bounded(expanded(lower(jaxpr, name=program_name(f))), while_bound)
        return replace(program, structure=structure)

    return traced


def check_bound(while_bound: Any) -> None:
    """Raises UnknownOption unless it is a number of trips or None."""
    if while_bound is not None and (type(while_bound) is not int or while_bound < 0):
        raise UnknownOption(f"while_bound must be a number of trips, got {while_bound!r}")


def lowered(jaxpr: Any, name: str, while_bound: int | None, package_rules: bool) -> Program:
    """The Program of a jaxpr without constants, with that bound on the trips of every while loop.

    package_rules: as for `bridge`.
    """
    program = lower(jaxprs.ClosedJaxpr(jaxpr, ()), name=name, package_rules=package_rules)
    return bounded(program, while_bound)


def program_name(f: Callable) -> str:
    """The function's name, made to fit the grammar."""
    name = re.sub(r"\W+", "_", function_name(f), flags=re.ASCII).strip("_")
    return f"f_{name}" if not name or name[0].isdigit() else name


def closed_trace(f: Callable, args: tuple, kwargs: dict[str, Any], fixed: Fixed) -> tuple[Any, Any]:
    """The closed jaxpr and the tree of the results of a call of `f`, whose static arguments are `fixed`.

    What `f` closes over are the jaxpr's constants: they may be tracers of an outer transformation. References
    that `f` makes and uses are values in it.
    """
    references.refuse_arguments((args, kwargs))
    function = references.refusing_results(fixed.into(f))
    try:
        jaxpr, shapes = jax.make_jaxpr(function, return_shape=True)(*args, **kwargs)
    except PyBridgeError:
        raise
    except Exception as e:
        if not _is_about_tracing(e):
            raise
        raise TracingError(f"{function_name(f)} cannot be traced{_user_line(e)}: {_reason(e)}") from e
    references.refuse_constants(jaxpr)
    return references.discharged(jaxpr), jax.tree.structure(shapes)


def _is_about_tracing(error: Exception) -> bool:
    """JAX's own exceptions and Python's, in which JAX and numpy also speak; not the user's classes."""
    module = type(error).__module__
    return module == "builtins" or module.split(".")[0] in ("jax", "jaxlib", "numpy")


def _user_line(error: Exception) -> str:
    frames = [
        (frame.f_code.co_filename, line, frame.f_code.co_qualname)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if source.is_user_file(frame.f_code.co_filename)
    ]
    return f" at {source.describe_frame(*frames[-1])}" if frames else ""


_NOT_CONCRETE = (
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerIntegerConversionError,
)


_DEPENDS_ON = re.compile(r"depends on the values? of the arguments? ((?:\w+(?:, and |, | and )?)+)\.")
"""What JAX adds to its errors where a number has to be known, to those about shapes and slices too."""


def _reason(error: Exception) -> str:
    reason = f"{type(error).__name__}: {error}".strip()
    arguments = _DEPENDS_ON.search(reason)
    if arguments is None and not isinstance(error, _NOT_CONCRETE):
        return reason
    names = [] if arguments is None else re.findall(r"\b(?!and\b)\w+", arguments[1])
    return (
        f"{reason}\nAn argument that has to be known when the function is traced, such as a number of steps, "
        f"is to be named in static_argnums or static_argnames, as for jax.jit{_as_option(names)}"
    )


def _as_option(names: list[str]) -> str:
    if not names:
        return ""
    return f": static_argnames={(names[0] if len(names) == 1 else tuple(names))!r}"
