"""A call made ready to run: compiled in Julia, and known to XLA where XLA's threads may enter Julia.

From Julia 1.9 on they may, and XLA calls Julia directly, through its foreign function interface. Before
that Julia runs on the control thread alone: XLA calls Python, which passes the arrays' addresses on.
"""

from __future__ import annotations

import functools
import hashlib
import os
from dataclasses import dataclass
from typing import Any

import jax
import jax.ffi
import numpy as np
from jax.interpreters import mlir

from .. import errors
from ..frontend.adapter import eager
from ..ir.numerals import DTYPES
from ..runtime import julia
from ..runtime.requests import ENZYME_FAILED, enzyme_error
from .call import Call, Function, describe

# What a failed call's message has in front of the text that a failed request answers.
ERROR_MARK = "JuliaError in a call of a Julia function\n"
_NAMED = (errors.EngineUnavailable, errors.NotDifferentiable)


@dataclass(frozen=True)
class Made:
    """number: Julia's for it. target: XLA's name for it, where XLA calls Julia itself."""

    number: int
    target: str | None


@functools.lru_cache(maxsize=4096)
def make(call: Call) -> Made:
    name = _target(call)
    doing = f"compiling the Julia function {call.function.name}"
    answer = ask("function_make", call.description, name, doing=doing)
    number, handler = (int(word) for word in answer.split())
    if not handler:
        return Made(number, None)
    jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(handler), platform="cpu", api_version=1)
    return Made(number, name)


@functools.lru_cache(maxsize=1024)
def infer(function: Function, arguments: str) -> str:
    """The tree of what the function returns, by one call on ones."""
    body = "\n".join([*describe(function, arguments), "narrows 1"]) + "\n\n" + function.source.code
    doing = f"calling the Julia function {function.name} for the types of its results"
    return ask("function_result", body, doing=doing, users=True)


def ask(command: str, body: str, *arguments: str, doing: str, users: bool = False) -> str:
    """Julia's answer about a described function; its exceptions come out as pybridge's."""
    try:
        return julia.request(command, body, arguments=arguments, doing=doing, users=users)
    except errors.JuliaError as failure:
        for kind in _NAMED:
            if kind.__name__ == failure.kind:
                raise kind(str(failure)) from None
        raise _named(failure) from None


def _target(call: Call) -> str:
    """From all that the code depends on; unique in this process where Julia's own state is part of that."""
    content = call.description
    if not call.function.source.lasting:
        content += f"\n{os.getpid()} {julia.start().how}"
    return f"pybridge_function_{hashlib.sha256(content.encode()).hexdigest()}"


def lower(ctx: Any, call: Call, operands: Any) -> Any:
    made = make(call)
    if made.target is not None:
        return jax.ffi.ffi_lowering(made.target)(ctx, *operands)
    results, _, _ = mlir.emit_python_callback(
        ctx,
        functools.partial(_by_control_thread, made.number, call.function.name, ctx.avals_out),
        None,
        list(operands),
        ctx.avals_in,
        ctx.avals_out,
        has_side_effect=False,
    )
    return results


def _by_control_thread(number: int, name: str, results: Any, *operands: Any) -> tuple[np.ndarray, ...]:
    # Copies, because a function that runs on after an interrupt reads them when XLA has forgotten its own.
    ins = [np.array(x, order="C") for x in operands]
    outs = [np.zeros(r.shape, r.dtype) for r in results]
    addresses = [",".join(str(a.ctypes.data) for a in arrays) or "-" for arrays in (ins, outs)]
    try:
        julia.request(
            "function_run",
            arguments=[str(number), *addresses],
            doing=f"running the function {name}",
            users=True,
            quiet=True,
            memory=(ins, outs),
        )
    except errors.JuliaError as failure:
        raise _told(failure.kind, str(failure), failure.stacktrace) from None
    except (errors.JuliaBusy, KeyboardInterrupt) as ended:
        raise _told(type(ended).__name__, str(ended)) from None
    return tuple(outs)


def _told(kind: str, message: str, trace: str = "") -> RuntimeError:
    """An exception whose text says through XLA what has happened."""
    return RuntimeError(f"{ERROR_MARK}{kind}\n{message}\n-----\n{trace}\n=====\n")


def run_julia(primitive: Any, operands: Any, what: str, **params: Any) -> Any:
    """The results of a primitive that calls Julia, where nothing is traced.

    Raises KeyboardInterrupt where it was interrupted, JuliaBusy while what was interrupted runs on, and
    JuliaError for what fails in Julia. It waits for the results, since only here an error of XLA's can be
    given its name.
    """
    try:
        return jax.block_until_ready(eager.run(primitive, operands, what, **params))
    except (RuntimeError, ValueError) as failure:  # the latter from calls that JAX has compiled before
        error = _as_julia_error(failure)
        if error is None:
            raise
        raise error from None


def _as_julia_error(failure: Exception) -> BaseException | None:
    """The exception that XLA's error tells of, if it does."""
    _, mark, text = str(failure).partition(ERROR_MARK)
    if not mark:
        return None
    text = text.partition("\n=====\n")[0]
    kind, _, rest = text.partition("\n")
    message, _, trace = rest.partition("\n-----\n")
    if kind == KeyboardInterrupt.__name__:
        return KeyboardInterrupt()
    if kind == errors.JuliaBusy.__name__:
        return errors.JuliaBusy(message)
    return _named(errors.JuliaError(message, kind=kind, stacktrace=trace))


def _named(error: errors.JuliaError) -> errors.JuliaError:
    return enzyme_error(error) if error.kind == ENZYME_FAILED else error


def dtype_of(type_: Any) -> np.dtype:
    return DTYPES[type_.dtype]
