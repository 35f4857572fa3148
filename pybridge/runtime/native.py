"""Programs as native kernels: compiled in Julia, called by XLA on the CPU without Python or Julia's heap.

A kernel is a target of XLA's foreign function interface, registered under a name made from all that its
code depends on: an executable from JAX's persistent cache finds, by that name, the kernel that this
process compiles, or none.
"""

from __future__ import annotations

import copy
import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.ffi
import numpy as np
from jax.extend.mlir.dialects import stablehlo

from .. import errors
from ..ir.dead_code import is_symbolic
from ..ir.program import Program
from . import kernel_files
from .keys import key
from .requests import ask, references

# Kernels hold the addresses of these arrays and live as long as the process. One array for each reference,
# so that Programs that share a constant share its memory.
_CONSTANTS: dict[str, np.ndarray] = {}


_WORKSPACE = re.compile(r'"pybridge_[0-9a-f]+_(\d+)"')
"""Of a kernel's target, in the text of compiled code."""


@dataclass(frozen=True)
class Kernel:
    """target: the name that XLA knows it by.

    workspace: the bytes of scratch memory that a call takes meanwhile. They end the target's name, so that
        compiled code tells them (`memory`).
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
    """The lowering of a call: one FFI call.

    Of several results the first passes a barrier, which costs nothing: if the body of a while loop is
    nothing but such a call, XLA makes the call the body's root, where it expects a tuple, and then the loop
    never ends or the process does.
    """
    results = list(jax.ffi.ffi_lowering(kernel(program).target)(ctx, *operands))
    if len(results) > 1:
        results[0] = stablehlo.optimization_barrier(results[:1])
    return results


def memory(compiled: Any) -> int:
    """The bytes that a `jax.stages.Compiled` takes: results, XLA's temporary buffers, and a workspace.

    Kernels that run one after the other compute in the same memory: the largest of their workspaces counts.
    """
    analysis = compiled.memory_analysis()
    workspaces = map(int, _WORKSPACE.findall(compiled.as_text()))
    planned = analysis.output_size_in_bytes - analysis.alias_size_in_bytes + analysis.temp_size_in_bytes
    return planned + max(workspaces, default=0)


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
    target = f"{target_name(program, '')}_{workspace}"
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
