"""What no table says: why something is missing, and what the primitives that are rewritten become."""

from __future__ import annotations

_HASH = "mulhi xor"

REWRITTEN: dict[str, str] = {
    **dict.fromkeys(("name", "device_put", "sharding_constraint", "layout_constraint", "reshard"), ""),
    **dict.fromkeys(("pvary", "relayout", "stage", "tie", "shape_assertion"), ""),
    **dict.fromkeys(("random_wrap", "random_unwrap", "random_clone"), ""),
    "polynomial": "mul add",
    "stack": "reshape concatenate",
    "unstack": "split squeeze",
    "tile": "broadcast_in_dim reshape",
    **dict.fromkeys(("empty", "empty2"), "broadcast_in_dim"),
    "dimension_size": "dim_size",
    "platform_index": "constant",
    "approx_top_k": "top_k neg",
    "ragged_dot_general": "select_n dot_general",
    "cholesky_update": "scan div sqrt mul sub add",
    "symmetric_product": "dot_general mul add",
    **dict.fromkeys(("eq_to", "le_to", "lt_to"), "eq lt le or and not"),
    "random_seed": "threefry2x32",
    "random_split": "threefry2x32",
    "random_fold_in": "threefry2x32",
    "random_bits": "threefry2x32 shift_right_logical or xor",
    "random_gamma": "threefry2x32 custom_jvp while log pow lgamma digamma",
    "iota_2x32_shape": "iota",
    "call_hi_primitive_linearized": "custom_vjp_tangent",
    **dict.fromkeys(("threefry4x32", "philox2x32", "philox4x32", "rng_bit_generator"), _HASH),
}
"""Operations of Programs, without those that only move and convert; nothing where a value stays as it is."""

BODIES = {
    *("jit", "pjit", "closed_call", "core_call", "core_closed_call", "call", "composite", "eval_jaxpr"),
    "program_order",
    *("custom_vmap_call", "remat_opt", "reduce", "reduce_window", "call_hi_primitive", "run_state"),
}
"""Calls that are inlined, reductions with a function, which are written out, and primitives that are objects:
they have what is in them."""

WHY: dict[str, str] = {
    "custom_lin": "never run: its transpose is the user's backward rule",
    "call_hi_primitive_linearized": "never run: its transpose is the primitive's backward rule",
    "rng_uniform": "draws from a state of XLA's own, which is no function; use `jax.random`",
    "select_and_scatter": "only for windows with a selection of one's own; `reduce_window` is there",
    "scaled_dot": "of float8 and float4 numbers, which Programs lack",
    "to_edtype": "dtypes that extensions of JAX define; random keys, JAX's own, are there",
    "from_edtype": "dtypes that extensions of JAX define; random keys, JAX's own, are there",
    "custom_partitioning": "code of the user's that runs while XLA partitions",
    "call_exported": "code that is StableHLO already; keep it outside the function that is bridged",
}
"""For what is missing of a primitive in the scope: one line, by the primitive's name in JAX."""

APART: dict[str, tuple[str, str]] = {
    "sparse matrices": (
        "`jax.experimental.sparse` is itself written in dense primitives by `sparsify`; its own ones wait",
        r"bco[or]_.*|bcsr_.*|co[or]_.*|csr_.*|spsolve|todense",
    ),
    "collectives": (
        "they are between devices, and a Program is for one. `bridge` takes functions that have them: "
        "Programs run before and behind them, and JAX binds and differentiates the collective",
        r"(unreduced_)?(all_gather|all_to_all|psum|pbroadcast|ppermute|reduce_scatter)(_\w+)?"
        r"|(unreduced_)?p(max|min)|precv|psend|preduced|axis_index|ragged_all_to_all|shard_map|\w+_cast(_p)?",
    ),
    "references, boxes and logs": (
        "values that change, and a Program is pure. References that a function makes and uses itself are "
        "values when it is traced; boxes and logs are refused",
        r"(empty_|free_|new_)?ref|freeze|get|swap|addupdate|accum_grad_in_ref|run_state|core_map|create_linear"
        r"|(un)?pin|broadcast_to|box_\w+|new_box|log_\w+|new_log",
    ),
    "effects and calls to the outside": (
        "what they do is no value, and a Program is pure. `bridge` takes functions with prints, callbacks "
        "and checks, which JAX binds between Programs; `io_callback` is refused",
        r"debug_\w+|io_callback|pure_callback|ffi_call|check|dce_sink|inspect_sharding|after_all|create_token"
        r"|unreachable",
    ),
    "kernels for one device": (
        "written for a GPU or TPU by hand; a Program says what is computed, not how",
        r"dot_product_attention_\w+|cudnn_fusion|scaled_matmul(_wrapper)?|with_memory_space_constraint|pallas_\w+",
    ),
}
"""Families outside the scope: why, and the names (a regular expression for the whole name)."""
