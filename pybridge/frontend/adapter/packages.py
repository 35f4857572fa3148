"""Primitives of other packages that are functions of JAX wherever nothing is batched.

Such a primitive exists for its rule under `vmap`: equinox's `unvmap_any` is `any` over the batch, too, so
that a loop of many items has one condition. Its value is that of its implementation, which its package lowers
by `mlir.lower_fun`, and its tangent is the implementation's. A Program has the implementation in its place,
and a batch of the Program is one of independent items, with the same results.

Not among them are primitives that are there to raise an error (`nondifferentiable_backward`, `nontraceable`).
"""

from __future__ import annotations

from typing import Any

from .jaxprs import ClosedJaxpr, bodies, defined_by

_NAMES = {
    "equinox": frozenset(
        {"unvmap_any", "unvmap_all", "unvmap_max", "nonbatchable", "select_if_vmap", "maybe_set"}
    )
}
"""The primitives, by the package that defines them."""

_BATCHED = "vprim"
"""equinox's batch of the primitive that its parameter `prim` names."""


def has_definition(eqn: Any) -> bool:
    """Whether a package defines the equation's primitive by other operations."""
    primitive = eqn.primitive
    if primitive.name == _BATCHED and _package(primitive) == "equinox":
        primitive = eqn.params["prim"]
    return primitive.name in _NAMES.get(_package(primitive), ())


def ends_early(eqn: Any) -> bool:
    """Whether it is a loop of fixed length whose trips do nothing once a condition of all items is false.

    equinox's bounded loops are such: nested scans of `cond`, with a checkpoint in each. XLA skips the trips
    that do nothing. A Program keeps room for what each of them would leave for reverse mode, and where the
    condition is written out, a batch skips none.
    """
    return eqn.primitive.name == "scan" and any(map(_is_left_out, bodies(eqn)))


def _is_left_out(jaxpr: Any) -> bool:
    """Whether the body, or that of a checkpoint in it, has a `cond` on a value that batches share."""
    shared = {v for eqn in jaxpr.eqns if eqn.primitive.name == "nonbatchable" for v in eqn.outvars}
    for eqn in jaxpr.eqns:
        if eqn.primitive.name == "convert_element_type" and not shared.isdisjoint(eqn.invars):
            shared.update(eqn.outvars)
        if eqn.primitive.name == "cond" and eqn.invars[0] in shared:
            return True
    calls = (eqn for eqn in jaxpr.eqns if eqn.primitive.name not in ("scan", "while", "cond"))
    return any(_is_left_out(body) for eqn in calls for body in bodies(eqn))


def definition(eqn: Any) -> ClosedJaxpr:
    """What the equation does, in other operations."""
    return defined_by(eqn, eqn.primitive.impl)


def _package(primitive: Any) -> str:
    """The package whose code computes the primitive's value."""
    return getattr(primitive.impl, "__module__", "").partition(".")[0]
