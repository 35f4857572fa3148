"""What packages add to JAX: primitives that are functions of JAX wherever nothing is batched, and loops.

Such a primitive exists for its rule under `vmap`: equinox's `unvmap_any` is `any` over the batch, too, so
that a loop of many items has one condition. Its value is that of its implementation, which its package lowers
by `mlir.lower_fun`, and its tangent is the implementation's. A Program has the implementation in its place,
and a batch of the Program is one of independent items, with the same results.

Not among them are primitives that are there to raise an error (`nondifferentiable_backward`, `nontraceable`).

A loop with checkpoints is a `while` under a reverse rule, which says how that loop is differentiated where a
`while` has no reverse mode, and so has no forward mode.
"""

from __future__ import annotations

import math
from typing import Any

from .jaxprs import ClosedJaxpr, bodies, defined_by, is_var

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


_CHECKPOINTED = "checkpointed-no-vjp"
"""equinox's name for the loop under the rule of its loops with checkpoints."""

_OF_BATCHES = ("broadcast_in_dim",)
"""What `vmap` puts in front of the loop under the rule."""

_LARGEST = 1 << 28
"""Bytes that a loop may carry in as many trips as it may make, to be differentiated as the loop that it is: a
record of each trip that it does make is some times as much. Chosen."""


def checkpointed_loop(eqn: Any) -> ClosedJaxpr | None:
    """The `while` that equinox's rule for loops with checkpoints is about.

    None if it is another equation, if no constant bounds the trips, or if memory may not hold them all, which
    is what checkpoints are for, or sizes are not known.
    """
    if eqn.primitive.name != "custom_vjp_call":
        return None
    call = eqn.params["call_jaxpr"]
    loops = [inner for inner in call.jaxpr.eqns if inner.primitive.name not in _OF_BATCHES]
    if [inner.primitive.name for inner in loops] != ["while"]:
        return None
    (loop,) = loops
    if not str(loop.source_info.name_stack).endswith(_CHECKPOINTED):
        return None
    trips = _most_trips(loop.params["cond_jaxpr"].jaxpr, loop.params["cond_nconsts"])
    known = all(isinstance(d, int) for v in loop.outvars for d in v.aval.shape)
    if trips is None or not known:
        return None
    carried = sum(math.prod(v.aval.shape) * v.aval.dtype.itemsize for v in loop.outvars)
    return call if trips * carried <= _LARGEST else None


def _most_trips(condition: Any, consts: int) -> int | None:
    """The constant below which the condition wants the counter, which equinox begins at 0 and carries before
    all else."""
    made = {v: eqn for eqn in condition.eqns for v in eqn.outvars}
    atoms = list(condition.outvars)
    while atoms:
        eqn = made.get(atoms.pop())
        if eqn is None:
            continue
        name, operands = eqn.primitive.name, eqn.invars
        if name in ("and", "convert_element_type", "nonbatchable"):
            atoms += [a for a in operands if is_var(a)]
        elif name == "lt" and operands[0] is condition.invars[consts] and not is_var(operands[1]):
            return int(operands[1].val)
    return None


def definition(eqn: Any) -> ClosedJaxpr:
    """What the equation does, in other operations."""
    return defined_by(eqn, eqn.primitive.impl)


def _package(primitive: Any) -> str:
    """The package whose code computes the primitive's value."""
    return getattr(primitive.impl, "__module__", "").partition(".")[0]
