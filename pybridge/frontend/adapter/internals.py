"""Every private name of JAX that pybridge uses. No other module imports from `jax._src`.

A name is resolved when it is first used, from the places where the versions of JAX have it. One that a
release has moved makes what uses it raise UnsupportedJax; nothing else fails. `missing()` lists those.
"""

from __future__ import annotations

import importlib
from typing import Any

import jax

from ...distribution import NAME
from ...errors import UnsupportedJax

OLDEST = (0, 10, 1)
"""The oldest JAX that pybridge supports."""

NEWEST = (0, 12)
"""The newest minor release of JAX that pybridge was tried on."""


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


if jax.__version_info__ < OLDEST:
    raise UnsupportedJax(
        f"pybridge needs JAX {_dotted(OLDEST)} or newer, and this is {jax.__version__}: "
        f"pip install --upgrade 'jax>={_dotted(OLDEST)}'"
    )

_ABSENT = "absent"
"""The place of a name in versions of JAX that do without it; it is None there."""

_PLACES: dict[str, tuple[str, ...]] = {
    # jax.extend: extend.py says why not from there
    "Primitive": ("core:Primitive",),
    "ClosedJaxpr": ("core:ClosedJaxpr", "core:Jaxpr"),
    "Jaxpr": ("core:Jaxpr",),
    "Var": ("core:Var",),
    "DropVar": ("core:DropVar",),
    "Literal": ("core:Literal",),
    "jaxpr_as_fun": ("core:jaxpr_as_fun",),
    "jaxprs_in_params": ("core:jaxprs_in_params",),
    "new_jaxpr_eqn": ("core:new_jaxpr_eqn",),
    "threefry2x32_p": ("random.threefry2x32:threefry2x32_p", "prng:threefry2x32_p"),
    "ir": ("lib.mlir:ir",),
    "stablehlo": ("lib.mlir.dialects:hlo",),
    "register_exclusion": ("source_info_util:register_exclusion",),
    "to_concrete_value": ("core:to_concrete_value",),
    # Source lines
    "is_user_filename": ("source_info_util:is_user_filename",),
    "user_frame": ("source_info_util:user_frame",),
    "user_context": ("source_info_util:user_context",),
    "current_name_stack": ("source_info_util:current_name_stack",),
    # Dimensions, abstract values
    "is_dim": ("core:is_dim",),
    "is_constant_dim": ("core:is_constant_dim",),
    "max_dim": ("core:max_dim",),
    "min_dim": ("core:min_dim",),
    "physical_aval": ("core:physical_aval",),
    "ManualAxisType": ("core:ManualAxisType",),
    "ArrayImpl": ("array:ArrayImpl",),
    # Settings
    "trace_context": ("config:trace_context",),
    "check_vma": ("config:_check_vma",),
    # Traces
    "trace_ctx": ("core:trace_ctx",),
    "unsafe_get_trace_stack": ("core:unsafe_get_trace_stack",),
    # Jaxprs
    "no_effects": ("core:no_effects",),
    "convert_constvars_jaxpr": ("interpreters.partial_eval:convert_constvars_jaxpr",),
    "dce_jaxpr": ("interpreters.partial_eval:dce_jaxpr",),
    "dce_rules": ("interpreters.partial_eval:dce_rules",),
    # Effects, mutable references
    "DebugEffect": ("debugging:DebugEffect",),
    "OrderedDebugEffect": ("debugging:OrderedDebugEffect",),
    "ErrorEffect": ("checkify:ErrorEffect",),
    "FailedCheckError": ("checkify:FailedCheckError",),
    "error_checks": ("checkify:error_checks",),
    "checkify_jaxpr": ("checkify:checkify_jaxpr",),
    "NamedAxisEffect": ("core:NamedAxisEffect",),
    "internal_mutable_array_effect": ("core:internal_mutable_array_effect",),
    "AbstractRef": ("state.types:AbstractRef",),
    "discharge_state": ("state.discharge:discharge_state2", "state.discharge:discharge_state"),
    "run_state_p": ("state.discharge:run_state_p",),
    # Batching
    "BatchTracer": ("interpreters.batching:BatchTracer",),
    # Derivatives
    "Zero": ("ad_util:Zero",),
    "SymbolicZero": ("ad_util:SymbolicZero",),
    "ValAccum": ("interpreters.ad:ValAccum",),
    "NullAccum": ("interpreters.ad:NullAccum",),
    "fancy_transposes": ("interpreters.ad:fancy_transposes",),
    # Primitives that are objects
    "HiPrim": ("hijax:HiPrim", "hijax:VJPHiPrimitive"),
    "HiType": ("hijax:HiType",),
    "call_hi_primitive_p": ("hijax:call_hi_primitive_p",),
    "vjp_from_jvp": ("hijax:vjp_from_jvp", _ABSENT),
    "vjp_from_lin": ("hijax:vjp_from_lin", _ABSENT),
    "CustomJVPTraced": ("hijax:CustomJVPTraced", _ABSENT),
    "CustomVJPTraced": ("hijax:CustomVJPTraced",),
    "OptRemat": ("hijax:OptRemat",),
    "VmapOf": ("hijax:VmapOf", _ABSENT),
    "Scan3": ("lax.control_flow.loops:Scan3",),
    "RematTraced": ("ad_checkpoint:RematTraced",),
    "CheckpointName": ("ad_checkpoint:CheckpointName",),
    "CheckpointNameFwd": ("ad_checkpoint:CheckpointNameFwd", _ABSENT),
    "PrimalLeftTangentRight": ("ad_checkpoint:PrimalLeftTangentRight", _ABSENT),
    "RootLinearMap": ("lax.control_flow.solves:_RootLinearMap", _ABSENT),
    "Einsum": ("numpy.hijax:Einsum", _ABSENT),
    # The settings that turn such objects on
    "use_custom_jvp3": ("config:custom_jvp3", _ABSENT),
    "use_custom_vjp3": ("config:custom_vjp3", _ABSENT),
    "use_remat3": ("config:remat3", _ABSENT),
    "use_scan3": ("config:scan3", _ABSENT),
    # Files: the classes of pytrees that people registered by jax.export
    "node_writers": ("export._export:serialization_registry",),
    "node_readers": ("export._export:deserialization_registry",),
    # Loops
    "scan_p": ("lax.control_flow.loops:scan_p",),
    "flat_trees": ("flattree", _ABSENT),
    # Checkpoints
    "name_p": ("ad_checkpoint:name_p",),
    "remat_p": ("ad_checkpoint:remat_p",),
    "partial_eval_jaxpr_custom_rules": ("interpreters.partial_eval:partial_eval_jaxpr_custom_rules",),
    "ensure_enum": ("interpreters.partial_eval:ensure_enum",),
    "RecomputeType": ("interpreters.partial_eval:RecomputeType",),
    # Several devices
    "parallel": ("lax.parallel",),
    "vary_cast_p": ("core:reduced_vary_cast_p", "core:vary_cast_p", _ABSENT),
    "get_axis_env": ("core:get_axis_env",),
    "extend_axis_env": ("shard_map:_extend_axis_env",),
    "as_manual_mesh": ("shard_map:_as_manual_mesh",),
    "use_abstract_mesh": ("mesh:use_abstract_mesh",),
    "SPMDAxisContext": ("sharding_impls:SPMDAxisContext",),
    # Registries
    "lowerings": ("interpreters.mlir:_lowerings",),
    "platform_specific_lowerings": ("interpreters.mlir:_platform_specific_lowerings",),
    # Definitions of operations by others
    "convert_element_type": ("lax.lax:_convert_element_type",),
    "ragged_dot_general_impl": ("lax.lax:_ragged_dot_general_impl",),
    "symmetric_product_jax_fn": ("lax.linalg:_symmetric_product_jax_fn",),
    "geqrf": ("lax.linalg:geqrf",),
    "geqp3": ("lax.linalg:geqp3",),
    # Random numbers
    "random_wrap": ("random.prng:random_wrap", "prng:random_wrap"),
    "random_seed_impl_base": ("random.prng:random_seed_impl_base", "prng:random_seed_impl_base"),
    "random_split_impl_base": ("random.prng:random_split_impl_base", "prng:random_split_impl_base"),
    "random_fold_in_impl_base": ("random.prng:random_fold_in_impl_base", "prng:random_fold_in_impl_base"),
    "random_bits_impl_base": ("random.prng:random_bits_impl_base", "prng:random_bits_impl_base"),
    "gamma_impl": ("random.core:_gamma_impl", "random:_gamma_impl"),
    "gamma_grad": ("random.core:_gamma_grad", "random:_gamma_grad"),
    "philox2x32_lowering": ("random.philox2x32:_philox2x32_lowering", _ABSENT),
    "philox4x32_lowering": ("random.philox4x32:_philox4x32_lowering", _ABSENT),
    "threefry4x32_lowering": ("random.threefry4x32:_threefry4x32_lowering", _ABSENT),
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    for place in _PLACES[name]:
        try:
            found = _at(place)
        except (ImportError, AttributeError):
            continue
        globals()[name] = found
        return found
    raise UnsupportedJax(
        f"JAX {jax.__version__} has none of {', '.join('jax._src.' + p for p in _PLACES[name])}, which "
        f"pybridge needs: {remedy()}"
    )


def _at(place: str) -> Any:
    if place == _ABSENT:
        return None
    module, _, attribute = place.partition(":")
    found = importlib.import_module(f"jax._src.{module}")
    return getattr(found, attribute) if attribute else found


def remedy() -> str:
    """What to install where this JAX does not do."""
    minor = _dotted((*NEWEST[:-1], NEWEST[-1] + 1))
    return f"pip install --upgrade {NAME}, or 'jax>={_dotted(OLDEST)},<{minor}'"


def tried() -> str:
    return f"tried with {_dotted(OLDEST)} to {_dotted(NEWEST)}"


def missing() -> list[str]:
    """The private names that the installed JAX lacks, with the places where they were looked for."""
    return [f"{name}: {', '.join(places)}" for name, places in _PLACES.items() if not _is_there(name)]


def _is_there(name: str) -> bool:
    try:
        __getattr__(name)
    except UnsupportedJax:
        return False
    return True
