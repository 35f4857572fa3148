"""The objects among JAX's own primitives that replace, or are to replace, primitives of the usual kind.

`jax_remat3`, `jax_custom_vjp3` and their like turn some of them on.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from . import internals
from .jaxprs import ClosedJaxpr, with_bodies

# What an object is


def is_high(eqn: Any) -> bool:
    """Whether the equation's primitive is an object."""
    return eqn.primitive is internals.call_hi_primitive_p


def primitive_of(eqn: Any) -> Any:
    return eqn.params["_prim"]


def is_a(prim: Any, *classes: type | None) -> bool:
    """Whether the object is of one of these classes of JAX's; None stands for one that this JAX lacks."""
    return any(cls is not None and isinstance(prim, cls) for cls in classes)


def overrides(prim: Any, method: str) -> bool:
    return getattr(type(prim), method) is not getattr(internals.HiPrim, method)


# Those with a counterpart


def counterpart(eqn: Any) -> Any:
    """The equation, or in its place that of the primitive which the object replaces."""
    if not is_high(eqn):
        return eqn
    prim = primitive_of(eqn)
    if is_a(prim, internals.RematTraced):
        return _checkpoint(eqn, prim)
    if is_a(prim, internals.Scan3):
        return _scan(eqn, prim)
    while is_a(prim, internals.VmapOf):
        prim = prim.prim
    if is_a(prim, internals.CheckpointName, internals.CheckpointNameFwd):
        return eqn.replace(primitive=internals.name_p, params={"name": prim.name})
    return eqn


def counterpart_throughout(eqn: Any) -> Any:
    """The same, also of the equations in its bodies."""

    def rebuilt(jaxpr: Any, consts: Sequence[Any]) -> ClosedJaxpr:
        inner = getattr(jaxpr, "jaxpr", jaxpr)
        return ClosedJaxpr(inner.replace(eqns=list(map(counterpart_throughout, inner.eqns))), consts)

    return with_bodies(counterpart(eqn), rebuilt)


def _checkpoint(eqn: Any, prim: Any) -> Any:
    params = {
        "jaxpr": prim.jaxpr,
        "prevent_cse": getattr(prim, "prevent_cse", True),
        "differentiated": False,
        "policy": prim.policy,
    }
    return eqn.replace(primitive=internals.remat_p, params=params)


def _scan(eqn: Any, prim: Any) -> Any:
    """A loop that carries its state in mutable references, which are among its constants."""
    consts = prim.extensives.index(True) if True in prim.extensives else len(prim.extensives)
    if not all(prim.extensives[consts:]):  # differentiated before it was traced
        return eqn
    params = {"length": prim.length, "reverse": prim.reverse, "unroll": prim.unroll, "jaxpr": prim.jaxpr}
    if internals.flat_trees is None:
        params |= {"num_consts": consts, "num_carry": 0}
    else:
        given = internals.flat_trees.nones
        trees = given(consts), given(0), given(len(prim.extensives) - consts)
        params |= {
            "ft_in": internals.flat_trees.pack(trees),
            "ft_out": internals.flat_trees.pack((given(0), given(len(eqn.outvars)))),
        }
    return eqn.replace(primitive=internals.scan_p, params=params)


def is_custom_rule(eqn: Any) -> bool:
    """Whether the object is a function with a derivative rule of the user's."""
    return is_high(eqn) and is_a(primitive_of(eqn), internals.CustomJVPTraced, internals.CustomVJPTraced)


@contextlib.contextmanager
def avoided() -> Iterator[None]:
    """Where `jax.checkpoint`, `jax.custom_vjp` and the like bind primitives of the usual kind."""
    with contextlib.ExitStack() as stack:
        for setting in (
            internals.use_custom_jvp3,
            internals.use_custom_vjp3,
            internals.use_remat3,
            internals.use_scan3,
        ):
            if setting is not None and setting.value:
                stack.enter_context(setting(False))
        yield


# Those that are what their value in other primitives is: its derivatives are theirs


def is_its_value(prim: Any) -> bool:
    """Whether the object is differentiated as its `expand` is written."""
    return is_a(prim, internals.Einsum, internals.OptRemat, internals.RootLinearMap)
