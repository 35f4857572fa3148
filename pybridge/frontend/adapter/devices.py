"""Several devices: collectives, named axes, and the mesh axes over which a value varies."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from typing import Any

import jax

from . import internals
from .extend import Primitive

COLLECTIVES = frozenset(
    {p.name for p in vars(internals.parallel).values() if isinstance(p, Primitive)}
    | {"shard_map", internals.vary_cast_p.name}
)
"""The names of the primitives that speak between devices, or say over which of them a value varies."""


def result_aval(shape: tuple, dtype: Any, operands: Any) -> Any:
    """The abstract value of a result; in `shard_map` it varies over every mesh axis that an operand does."""
    over = frozenset().union(*map(varying, operands))
    if not over:
        return jax.core.ShapedArray(shape, dtype)
    mesh = next(a for a in operands if varying(a)).sharding.mesh
    return jax.core.ShapedArray(
        shape,
        dtype,
        sharding=jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*(None,) * len(shape))),
        manual_axis_type=internals.ManualAxisType(varying=over),
    )


def varying(aval: Any) -> frozenset:
    """The mesh axes over which a value differs between devices, as far as `shard_map` knows."""
    return aval.mat.varying if hasattr(aval, "mat") else frozenset()


def varying_together(xs: Any) -> frozenset:
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


def on_cpu(arrays: Any) -> bool:
    return all(device.platform == "cpu" for x in arrays for device in x.devices())


# Platforms

_targets: ContextVar[tuple[str, ...]] = ContextVar("targets", default=())


@contextlib.contextmanager
def lowered_for(platforms: Sequence[str]) -> Iterator[None]:
    """What is traced within is for these platforms, not for the one that JAX runs on."""
    token = _targets.set(tuple(platforms))
    try:
        yield
    finally:
        _targets.reset(token)


def targets() -> tuple[str, ...]:
    """The platforms for which functions are traced."""
    return _targets.get() or (jax.default_backend(),)


def is_for(platform: str, names: Sequence[str] | None) -> bool:
    """Whether code for the platforms of those names, or for all if there are none, is for this one."""
    aliases = {platform, "gpu"} if platform in ("cuda", "rocm") else {platform}
    if platform == "gpu":  # as JAX calls the one that it runs on
        aliases |= {"cuda", "rocm"}
    return names is None or not aliases.isdisjoint(names)


def in_named_axes() -> bool:
    return bool(internals.get_axis_env().axis_sizes)


@contextlib.contextmanager
def inside(eqn: Any):
    """Where the bodies of an equation are traced: of a `shard_map` its axes have names there."""
    if eqn.primitive.name != "shard_map":
        yield
        return
    mesh, axes = eqn.params["mesh"], eqn.params["newly_manual_axes"]
    with (
        internals.extend_axis_env(mesh, axes),
        internals.use_abstract_mesh(internals.as_manual_mesh(mesh, axes)),
        internals.check_vma(eqn.params["check_vma"]),
    ):
        yield


# Lowering


def is_export(ctx: Any) -> bool:
    """Whether what is lowered is for `jax.export`, hence for other processes."""
    return ctx.module_context.lowering_parameters.for_export


def partitions(ctx: Any) -> int:
    """Over how many devices XLA will split what is lowered; 1 inside a `shard_map` over the whole mesh."""
    context = ctx.module_context.axis_context
    if isinstance(context, internals.SPMDAxisContext):
        automatic = set(context.mesh.axis_names) - context.manual_axes
        return math.prod(context.mesh.shape[name] for name in automatic)
    return getattr(context, "num_devices", 1)
