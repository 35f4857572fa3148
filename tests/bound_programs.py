"""What a jaxpr binds: the Programs that it calls, and the primitives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pybridge.frontend.adapter.extend import jaxprs_in_params
from pybridge.ir.program import Program


def programs_in(jaxpr: Any) -> Iterator[Program]:
    """Of `julia_call` and `julia_jvp`, in the order of the equations, and in the bodies of these."""
    for eqn in jaxpr.eqns:
        if str(eqn.primitive) in ("julia_call", "julia_jvp"):
            yield eqn.params["program"]
        for body in jaxprs_in_params(eqn.params):
            yield from programs_in(body)


def primitives_in(jaxpr: Any) -> set[str]:
    """The names of all, those in the bodies of equations among them."""
    inner = (primitives_in(body) for eqn in jaxpr.eqns for body in jaxprs_in_params(eqn.params))
    return {eqn.primitive.name for eqn in jaxpr.eqns}.union(*inner)
