"""Everything that pybridge takes from JAX's private modules. Tried on JAX 0.10.2.

Each entry says what it is for, so that a JAX release that moves something is answered here alone.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import math
import os
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax._src import ad_checkpoint, ad_util, config, core, shard_map, sharding_impls, source_info_util
from jax._src.interpreters import ad, mlir, partial_eval
from jax._src.lax import lax as lax_internal
from jax._src.lax import linalg as linalg_internal
from jax._src.lax import parallel
from jax._src.mesh import use_abstract_mesh
from jax.extend import core as jex_core
from jax.extend import source_info_util as public_source_info

# Frames of pybridge itself are never the user's line.
public_source_info.register_exclusion(os.path.dirname(__file__) + os.sep)

Tracer = jax.core.Tracer
ClosedJaxpr = jex_core.ClosedJaxpr
JaxprLiteral = jex_core.Literal
JaxprVar = jex_core.Var
float0 = jax.dtypes.float0


def is_user_file(path: str) -> bool:
    """Whether a frame in this file is the user's, not JAX's, pybridge's or the standard library's."""
    return source_info_util.is_user_filename(path)


def user_source(source_info: Any) -> str:
    """`file.py:12 (function)` of the innermost user frame of an equation, or an empty string."""
    frame = source_info_util.user_frame(source_info.traceback)
    return describe_frame(frame.file_name, frame.start_line, frame.function_name) if frame else ""


def describe_frame(path: str, line: int, function: str) -> str:
    """The form in which source positions are shown; paths inside the working directory are relative to it."""
    here = os.getcwd() + os.sep
    return f"{path.removeprefix(here)}:{line} ({function})"


# Symbolic dimensions


def is_symbolic_dim(size: Any) -> bool:
    return core.is_dim(size) and not core.is_constant_dim(size)


def max_dim(x, y):
    return core.max_dim(x, y)


def min_dim(x, y):
    return core.min_dim(x, y)


# The user's derivative rules. A jaxpr holds them as functions that trace the rule on demand, for a given
# pattern of tangents known to be zero; Programs want one rule that serves all, so everything inexact is taken
# to be perturbed.


def jvp_rule(eqn, inexact: list[bool]) -> tuple[ClosedJaxpr, list[bool]]:
    """The rule of a custom_jvp_call: (x..., tangents of the inexact x...) -> (y..., tangents...).

    x are the operands after the first `num_consts`, and `inexact` says which of them have tangents.
    Also which outputs have no tangent in the result, because the rule says that it is zero.
    """
    jaxpr, consts, out_zeros = eqn.params["jvp_jaxpr_fun"].call_wrapped(*(not i for i in inexact))
    return ClosedJaxpr(jaxpr, consts), list(out_zeros)


def fwd_rule(eqn, inexact: list[bool]) -> tuple[ClosedJaxpr, list[int | None]]:
    """The forward rule of a custom_vjp_call: (x...) -> (own residuals..., y...).

    Also the list of all residuals: None for the next of the rule's own, else the number of the operand
    (closed-over constants counted) that is the residual.
    """
    jaxpr, consts = eqn.params["fwd_jaxpr_thunk"].call_wrapped(*inexact)
    _, _, residuals = eqn.params["out_trees"]()
    return ClosedJaxpr(jaxpr, consts), list(residuals)


def bwd_rule(bwd, residual_avals, out_avals, wanted: list[Any]) -> ClosedJaxpr:
    """The backward rule: (residuals..., cotangents of the inexact y...) -> (cotangents of the wanted x...).

    wanted: for each x its aval if a cotangent is wanted, else None. Must follow `fwd_rule`, which
    tells JAX how the residuals are grouped.
    """
    inexact = [is_inexact(aval) for aval in out_avals]

    def rule(*args):
        residuals, given = args[: len(residual_avals)], iter(args[len(residual_avals) :])
        cotangents = [
            next(given) if i else np.zeros(aval.shape, float0)
            for i, aval in zip(inexact, out_avals, strict=True)
        ]
        results = bwd.call_wrapped(*residuals, *cotangents)
        return [_instantiated(ct, aval) for ct, aval in zip(results, wanted, strict=True) if aval is not None]

    avals = [*residual_avals, *(aval for i, aval in zip(inexact, out_avals, strict=True) if i)]
    return jax.make_jaxpr(rule)(*(a.strip_weak_type() for a in avals))


def vjp_rules(eqn) -> tuple[ClosedJaxpr, list[int | None], ClosedJaxpr]:
    """Of a custom_vjp_call what `fwd_rule` gives, and the backward rule."""
    consts = eqn.params["num_consts"]
    avals, outs = [v.aval for v in eqn.invars], [v.aval for v in eqn.outvars]
    forward, residuals = fwd_rule(eqn, [is_inexact(a) for a in avals[consts:]])
    own = iter(forward.out_avals)
    residual_avals = [next(own) if r is None else avals[r] for r in residuals]
    wanted = [a if is_inexact(a) else None for a in avals[consts:]]
    return forward, residuals, bwd_rule(eqn.params["bwd"], residual_avals, outs, wanted)


def _instantiated(cotangent: Any, aval: Any) -> Any:
    if isinstance(cotangent, ad_util.Zero | ad_util.SymbolicZero):
        return jnp.zeros(aval.shape, aval.dtype)
    return jax.lax.convert_element_type(cotangent, aval.dtype)


def is_float0(aval: Any) -> bool:
    """Whether this is the type of an integer's tangent."""
    return getattr(aval, "dtype", None) == float0


def is_inexact(aval: Any) -> bool:
    return hasattr(aval, "dtype") and jnp.issubdtype(aval.dtype, np.inexact)


# Primitives that JAX itself defines by others


def _each_matrix(definition, *operands):
    """The definition, which knows matrices and vectors alone, on batches of them."""
    for _ in range(operands[0].ndim - 2):
        definition = jax.vmap(definition)
    return definition(*operands)


def definition(eqn) -> ClosedJaxpr:
    """What an equation of one of `DEFINED` does, in other primitives, as JAX lowers it."""
    function = functools.partial(_DEFINITIONS[eqn.primitive.name], **eqn.params)
    return jax.make_jaxpr(function)(*(jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in eqn.invars))


_DEFINITIONS = {
    "ragged_dot_general": lax_internal._ragged_dot_general_impl,
    "cholesky_update": functools.partial(_each_matrix, linalg_internal._cholesky_update_jax_fn),
    "symmetric_product": linalg_internal._symmetric_product_jax_fn,
}
DEFINED = tuple(_DEFINITIONS)


# Binding Programs


def result_aval(shape: tuple, dtype: Any, operands) -> Any:
    """The abstract value of a result; in `shard_map` it varies over every mesh axis that an operand does."""
    over = frozenset().union(*map(varying, operands))
    if not over:
        return core.ShapedArray(shape, dtype)
    mesh = next(a for a in operands if varying(a)).sharding.mesh
    return core.ShapedArray(
        shape,
        dtype,
        sharding=jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*(None,) * len(shape))),
        manual_axis_type=core.ManualAxisType(varying=over),
    )


def varying(aval: Any) -> frozenset:
    """The mesh axes over which a value differs between devices, as far as `shard_map` knows."""
    return aval.mat.varying if hasattr(aval, "mat") else frozenset()


def varying_together(xs) -> frozenset:
    """The mesh axes over which one of the arrays varies."""
    return frozenset().union(*(varying(jax.typeof(x)) for x in xs))


def varying_over(x: Any, axes: frozenset) -> Any:
    """The array, in `shard_map`, as one that varies over these mesh axes.

    The cotangents of what is the same on all devices are summed over them by JAX, as the transpose of this.
    """
    missing = axes - varying(jax.typeof(x)) if axes else axes
    return jax.lax.pcast(x, tuple(sorted(missing, key=str)), to="varying") if missing else x


def varying_like(x: Any, aval: Any) -> Any:
    """The array, in `shard_map`, as one that varies over every mesh axis over which `aval` does."""
    return varying_over(x, varying(aval))


def signature(x: Any) -> tuple:
    """What tracing depends on: shape, dtype and weak type, and over which mesh axes it varies."""
    aval = jax.typeof(x)
    return aval.shape, aval.dtype, aval.weak_type, getattr(aval, "mat", None)


def trace_context() -> tuple:
    """What tracing depends on beside the arguments: named axes, the mesh, 64-bit types and other settings."""
    return config.trace_context()


def with_weak_type(x: Any, weak: bool) -> Any:
    """The array with the given weak type, differentiably: its cotangent has the type that `x` has."""
    return x if jax.typeof(x).weak_type == weak else lax_internal._convert_element_type(x, weak_type=weak)


def any_tracer(values) -> bool:
    return any(isinstance(v, Tracer) for v in values)


# Jaxprs in pieces, and what speaks between devices

COLLECTIVES = frozenset(
    {p.name for p in vars(parallel).values() if isinstance(p, core.Primitive)}
    | {"shard_map", core.reduced_vary_cast_p.name}
)
"""The names of the primitives that do."""


@functools.cache
def is_of_jax(primitive: Any) -> bool:
    """Whether JAX itself defines the primitive, not a package that uses it."""
    modules = [m for name, m in list(sys.modules.items()) if name.split(".")[0] == "jax"]
    return any(value is primitive for module in modules for value in list(vars(module).values()))


def in_named_axes() -> bool:
    return bool(core.get_axis_env().axis_sizes)


def is_var(atom: Any) -> bool:
    """Whether an operand or output of an equation is a variable, not a literal."""
    return not isinstance(atom, JaxprLiteral)


def open_jaxpr(jaxpr):
    """The jaxpr with its constants as leading inputs."""
    return partial_eval.convert_constvars_jaxpr(jaxpr)


def jaxpr_of(eqns, invars, outvars, like):
    """A jaxpr of some of the equations of the jaxpr `like`."""
    debug_info = like.debug_info.with_unknown_names()
    return jex_core.Jaxpr((), list(invars), list(outvars), list(eqns), debug_info=debug_info)


def without_dead_code(jaxpr):
    """The jaxpr without what its outputs do not need; the inputs stay."""
    opened = open_jaxpr(jaxpr)
    alive, _ = partial_eval.dce_jaxpr(opened, True, instantiate=True)
    count = len(jaxpr.constvars)
    return alive.replace(constvars=alive.invars[:count], invars=alive.invars[count:])


def traced(f: Callable, avals) -> ClosedJaxpr:
    return jax.make_jaxpr(f)(*avals)


def bodies(eqn) -> list[Any]:
    """The jaxprs in the parameters of an equation, without their constants."""
    return list(core.jaxprs_in_params(eqn.params))


def with_bodies(eqn, rebuilt: Callable[[Any, Any], ClosedJaxpr]):
    """The equation with `rebuilt(jaxpr, constants)` in the place of each body."""

    def of(value):
        if isinstance(value, core.ClosedJaxpr):
            return rebuilt(value.jaxpr, value.consts)
        if isinstance(value, core.Jaxpr):
            return _without_constants(rebuilt(value, ()))
        if isinstance(value, tuple) and any(True for _ in core.jaxprs_in_params({"": value})):
            bodies = map(of, value)
            return type(value)(*bodies) if hasattr(value, "_fields") else tuple(bodies)
        return value

    return eqn.replace(params={name: of(value) for name, value in eqn.params.items()})


def _without_constants(closed: ClosedJaxpr):
    if closed.consts:
        raise NotImplementedError("a body of checkpoint or shard_map with constants of its own")
    return closed.jaxpr


@contextlib.contextmanager
def inside(eqn):
    """Where the bodies of an equation are traced: of a `shard_map` its axes have names there."""
    if eqn.primitive.name != "shard_map":
        yield
        return
    mesh, axes = eqn.params["mesh"], eqn.params["newly_manual_axes"]
    with (
        shard_map._extend_axis_env(mesh, axes),
        use_abstract_mesh(shard_map._as_manual_mesh(mesh, axes)),
        config._check_vma(eqn.params["check_vma"]),
    ):
        yield


def bind(eqn, operands) -> list[Any]:
    """The results of an equation for these operands, in whatever transformation is at work."""
    params = eqn.primitive.get_bind_params(eqn.params)
    with (
        source_info_util.user_context(eqn.source_info.traceback),
        eqn.ctx.manager,
    ):
        results = eqn.primitive.bind(*operands, **params)
    return list(results) if eqn.primitive.multiple_results else [results]


# Lowering


def is_export(ctx: Any) -> bool:
    """Whether what is lowered is for `jax.export`, hence for other processes."""
    return ctx.module_context.lowering_parameters.for_export


def partitions(ctx: Any) -> int:
    """Over how many devices XLA will split what is lowered; 1 inside a `shard_map` over the whole mesh."""
    context = ctx.module_context.axis_context
    if isinstance(context, sharding_impls.SPMDAxisContext):
        automatic = set(context.mesh.axis_names) - context.manual_axes
        return math.prod(context.mesh.shape[name] for name in automatic)
    return getattr(context, "num_devices", 1)


# Factorizations that jax.lax.linalg does not export
geqrf, geqp3 = linalg_internal.geqrf, linalg_internal.geqp3


# What jax.checkpoint's policies say

Policy = Callable[..., Any]


def saves_everything(policy: Policy | None) -> bool:
    return policy is jax.checkpoint_policies.everything_saveable


def saveable_levels(policies: tuple[Policy, ...], eqn) -> list[int]:
    """The places of the policies that allow to keep the equation's results."""
    return [level for level, policy in enumerate(policies) if is_saveable(policy, eqn)]


_MARK = "pybridge: may be kept"


def mark(var: Any, marked: Any):
    """The equation `marked = var`, by which a policy that goes by marks knows the value."""
    return jex_core.new_jaxpr_eqn([var], [marked], ad_checkpoint.name_p, {"name": _MARK}, core.no_effects)


def is_mark(eqn) -> bool:
    return eqn.primitive is ad_checkpoint.name_p and eqn.params["name"] == _MARK


def by_marks(eqn):
    """A checkpoint with a policy as one that also keeps what is marked; any other equation as it is."""
    policy = eqn.params.get("policy")
    if policy is None or "prevent_cse" not in eqn.params or saves_everything(policy):
        return eqn
    marks = jax.checkpoint_policies.save_only_these_names(_MARK)
    both = jax.checkpoint_policies.save_from_both_policies(policy, marks)
    return eqn.replace(params={**eqn.params, "policy": both})


def is_saveable(policy: Policy, eqn) -> bool:
    """Whether the equation's results may be kept."""
    return not is_opened(eqn) and _allows(policy(eqn.primitive, *(v.aval for v in eqn.invars), **eqn.params))


def is_opened(eqn) -> bool:
    """Whether policies are asked about the equations inside, as of calls and control flow."""
    return eqn.primitive in partial_eval.partial_eval_jaxpr_custom_rules or eqn.primitive.name in _BY_JVP


_BY_JVP = ("custom_jvp_call", "custom_vjp_call", "composite")
"""Of which the JVP, which comes first, leaves what is inside."""


def _allows(answer: Any) -> bool:
    """To offload a value is to keep it: there is but one memory here."""
    return not isinstance(partial_eval.ensure_enum(answer), partial_eval.RecomputeType)


# The registries of primitives


class JaxRules(NamedTuple):
    """Which rules JAX has for a primitive."""

    jvp: bool
    transpose: bool


def rules() -> tuple[set[Any], set[Any]]:
    """JAX's primitives that have a JVP rule, and those with a transpose rule in either of its two tables."""
    return set(ad.primitive_jvps), set(ad.primitive_transposes) | set(ad.fancy_transposes)


def primitives() -> dict[str, JaxRules]:
    """Every primitive of JAX that it can differentiate, transpose or lower, pybridge's own left out."""
    importlib.import_module("jax.experimental.sparse")  # registers its primitives

    jvps, transposes = ({p.name for p in table} for table in rules())
    lowered = {p.name for p in mlir._lowerings}.union(
        *({p.name for p in table} for table in mlir._platform_specific_lowerings.values())
    )
    ours = {"julia_call", "julia_function", "enzyme_call", "enzyme_derivative", "while_passes"}
    return {name: JaxRules(name in jvps, name in transposes) for name in (jvps | transposes | lowered) - ours}
