"""Programs as native kernels: compiled in Julia, called by XLA on the CPU without Python or Julia's heap.

A kernel is a target of XLA's foreign function interface, registered under a name made from all that its
code depends on: an executable from JAX's persistent cache finds, by that name, the kernel that this
process compiles, or none.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.ffi
import numpy as np

from .. import errors
from ..frontend.adapter import devices
from ..ir.dead_code import is_symbolic
from ..ir.program import Program
from . import kernel_files
from .keys import key
from .requests import ask, references

# Kernels hold the addresses of these arrays and live as long as the process. One array for each reference,
# so that Programs that share a constant share its memory.
_CONSTANTS: dict[str, np.ndarray] = {}


@dataclass(frozen=True)
class Kernel:
    """target: the name that XLA knows it by.

    workspace: the bytes of scratch memory, u8[workspace], that a call takes as its last result; without any
        there is no such result.
    """

    target: str
    workspace: int


def kernel(program: Program) -> Kernel:
    """The Program's kernel, compiled and registered when it is first asked for.

    Raises UnsupportedPrimitive, with name and source, where a primitive has no native kernel, and
    ArgumentError for a Program with symbolic dimensions.
    """
    made = _attempt(program)
    if isinstance(made, errors.PyBridgeError):
        raise copy.copy(made)  # JAX adds to an exception where in the user's code it was raised
    return made


def refusal(program: Program) -> errors.PyBridgeError | None:
    """What `kernel` would raise."""
    made = _attempt(program)
    return made if isinstance(made, errors.PyBridgeError) else None


def explain(program: Program) -> str:
    """What the compiler does with the Program, as text for people.

    The stages with their times, loop nests with the user's lines, and why arrays are in memory. Raises what
    `kernel` raises.
    """
    return ask("explain", program, references(kept_constants(program)))


def lower(ctx: Any, program: Program, operands: Sequence[Any]) -> list[Any]:
    """The lowering of a call: one FFI call, whose last result, the workspace, XLA plans but nobody reads."""
    made = kernel(program)
    avals = list(ctx.avals_out)
    if made.workspace:
        avals.append(devices.result_aval((made.workspace,), np.dtype(np.uint8), ctx.avals_in))
    rule = jax.ffi.ffi_lowering(made.target)
    return list(rule(ctx.replace(avals_out=avals), *operands))[: len(program.outputs)]


@functools.cache
def _attempt(program: Program) -> Kernel | errors.PyBridgeError:
    if is_symbolic(program):
        return errors.ArgumentError(
            f"{program.name} has symbolic dimensions, and kernels are compiled for concrete shapes"
        )
    try:
        handler, workspace = _compiled(program)
    except errors.UnsupportedPrimitive as refused:
        return refused
    target = target_name(program, str(workspace))
    # Two threads may both come here: Julia gives both the same handler, and XLA takes that twice.
    jax.ffi.register_ffi_target(target, jax.ffi.pycapsule(handler), platform="cpu", api_version=1)
    return Kernel(target, workspace)


def _compiled(program: Program) -> tuple[int, int]:
    """The address of the Program's FFI handler in native code, and the bytes of workspace that it takes."""
    constants = kept_constants(program)
    in_file = kernel_files.kernel(program, constants)
    if in_file is not None:
        return in_file
    handler, workspace = map(int, ask("compile", program, program.digest, references(constants)).split())
    return handler, workspace


def kept_constants(program: Program) -> dict[str, np.ndarray]:
    """The Program's constants as arrays that stay where they are."""
    return {
        ref: _CONSTANTS.setdefault(ref, np.ascontiguousarray(data)) for ref, data in program.constants.items()
    }


def target_name(program: Program, how: str) -> str:
    """A name for XLA, of all that the code of a Program depends on."""
    return "pybridge_" + key("target", program.digest, how).split()[1]
