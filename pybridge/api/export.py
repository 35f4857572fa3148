"""`export`: functions and Programs as StableHLO that needs neither pybridge nor Julia."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Literal

import jax
import jax.export

from ..errors import ArgumentError, SideEffectError, UnknownOption, UnsupportedPrimitive
from ..frontend.adapter import devices, effects, source
from ..frontend.dimensions import export_arguments
from ..ir.program import Program
from ..runtime.julia_call import call
from ..runtime.placement import in_export
from .bridge import bridge

PLATFORMS = ("cpu", "cuda", "rocm", "tpu")

LINEAR_ALGEBRA = {"portable": "portable", "platform": "xla"}
"""By the name the execute mode."""

# jax.export checks symbolic shapes, and writes operations of such shapes, by custom calls that are
# StableHLO's own: where it is loaded, for given shapes, they become operations.
_ALLOWED_CALLS = re.compile(r"shape_assertion|stablehlo\..*")


def export(
    f: Callable | Program,
    platforms: Sequence[str] = ("cpu", "cuda", "tpu"),
    *,
    linear_algebra: Literal["portable", "platform"] = "portable",
    **options,
) -> Callable[..., jax.export.Exported]:
    """`export(f, platforms)(*args)` is a `jax.export.Exported` of `f` at those shapes and dtypes.

    f: a function (bridged with `options` if it is not a Program), or a Program, whose own input types serve
        when no arguments are given.
    args: arrays or `jax.ShapeDtypeStruct`s; dimensions may be symbolic (`jax.export.symbolic_shape`). Static
        ones, by the options, are part of what is exported, which is called without them.

    linear_algebra: "portable" factors and solves in StableHLO alone: the result holds no custom call, and
        XLA compiles it for each platform. Eigenvalues and singular values are by Jacobi's rotations, whose
        vectors have other signs than LAPACK's. "platform" is what JAX does: calls of LAPACK and cuSOLVER,
        those that jax.export promises to keep, faster for large matrices on the CPU.

    `exported.serialize(vjp_order=n)` keeps n orders of derivatives, made by Julia now; a pickle keeps none.
    The result reloads in a process that has neither pybridge nor Julia.

    Raises UnknownOption for a platform or a linear algebra that does not exist, UnsupportedPrimitive where an
    operation is a call that another process may not have, SideEffectError for prints and callbacks.
    """
    if linear_algebra not in LINEAR_ALGEBRA:
        known = ", ".join(map(repr, LINEAR_ALGEBRA))
        raise UnknownOption(f"there is no linear_algebra {linear_algebra!r}; there are {known}")
    execute = LINEAR_ALGEBRA[linear_algebra]
    if not isinstance(f, Program) and not callable(f):
        raise ArgumentError(f"export takes a function or a Program, got {type(f).__name__}")
    given = list(platforms) if isinstance(platforms, list | tuple) else [platforms]
    unknown = [p for p in given if p not in PLATFORMS]
    if unknown or not given:
        what = f"there is no platform {unknown[0]!r}" if unknown else "no platform is given"
        raise UnknownOption(f"{what}; there are {', '.join(PLATFORMS)}")

    def exported(*args, **kwargs) -> jax.export.Exported:
        if isinstance(f, Program):
            function, args = (
                (lambda *xs: tuple(call(f, *xs, execute=execute))),
                args or export_arguments(f.input_types),
            )
        else:
            bridged = bridge(f, execute="xla", **options).executed_by(execute)
            args, kwargs, fixed = bridged.static_arguments.split(args, kwargs)
            function = fixed.into(bridged)
        jitted = jax.jit(function)
        with in_export(), devices.lowered_for(list(map(str, given))):
            _refuse_host_calls(jitted.trace(*args, **kwargs).jaxpr)
            try:
                result = jax.export.export(jitted, platforms=given)(*args, **kwargs)
            except (ValueError, NotImplementedError) as e:
                raise _refusal(e) or e from None
        if linear_algebra == "portable":
            _refuse_custom_calls(_custom_calls(result.mlir_module()))
        return _Exported.of(result)

    return exported


class _Exported(jax.export.Exported):
    """JAX's, which cannot be pickled, as one that can, and whose derivatives are traced as it was."""

    @classmethod
    def of(cls, exported: jax.export.Exported) -> _Exported:
        made = object.__new__(cls)
        made.__dict__.update(vars(exported))
        return made

    def vjp(self) -> jax.export.Exported:
        with in_export(), devices.lowered_for(self.platforms):
            return super().vjp()

    def serialize(self, vjp_order: int = 0) -> bytearray:
        with in_export(), devices.lowered_for(self.platforms):
            return super().serialize(vjp_order)

    def __reduce__(self):
        return jax.export.deserialize, (bytearray(self.serialize()),)

    def __copy__(self) -> _Exported:
        return self

    def __deepcopy__(self, memo: dict) -> _Exported:
        return self


def _refuse_host_calls(jaxpr: Any) -> None:
    found = effects.first_bound_by_jax(jaxpr)
    if found is not None:
        at = f" at {line}" if (line := source.line_of(found)) else ""
        raise SideEffectError(
            f"{found.primitive.name}{at} calls code of this process, which no export can hold: leave it out "
            "of what is exported"
        )


def _custom_calls(module: str) -> set[str]:
    return set(re.findall(r"custom_call @([\w.]+)", module))


def _refuse_custom_calls(called: set[str]) -> None:
    refused = sorted(name for name in called if not _ALLOWED_CALLS.fullmatch(name))
    if refused:
        raise UnsupportedPrimitive(
            f"the exported module would call {', '.join(refused)}, which only a process with the "
            "same runtime library has. Leave these operations out of what is exported, export for fewer "
            'platforms, or, where it is a library for linear algebra, with linear_algebra="platform".',
            primitive=refused[0],
        )


def _refusal(error: Exception) -> UnsupportedPrimitive | None:
    """What JAX's own words mean here: calls that it promises nothing of, or a platform it has no code for."""
    text = str(error)
    try:
        _refuse_custom_calls(_custom_calls(text))
    except UnsupportedPrimitive as refusal:
        return refusal
    missing = re.search(r"rule for primitive '([\w-]+)' not found for platform (\w+)", text)
    if missing is None:
        return None
    name, platform = missing.groups()
    return UnsupportedPrimitive(
        f"JAX has no {name} for {platform}: export for fewer platforms", primitive=name
    )
