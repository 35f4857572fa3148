"""Primitives of packages with a derivative of their own, by the rules that JAX has for them.

Where they stand in a derivative, nothing is there that could raise an error: what a solve raises is NaN here,
and so is the cotangent of what refuses reverse mode, unless it is 0.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp

from . import equation_parameters, packages
from .custom_rules import CustomJvp, Perturbed
from .jaxprs import ClosedJaxpr, bind, interpreted, is_inexact, jvp_of, traced


def rules(eqn: Any) -> CustomJvp:
    """The value by its definition, and the package's rule."""
    call = traced(functools.partial(_computed, packages.definition(eqn)), [v.aval for v in eqn.invars])
    return CustomJvp(call, 0, functools.partial(_rule, eqn), True)


def _computed(definition: Any, *args: Any) -> list[Any]:
    return interpreted(definition, args, _applied)


def _applied(eqn: Any, operands: list[Any]) -> list[Any]:
    error = packages.error(eqn)
    if error is not None:
        return [_nan_if(error.is_due(operands), x) for x in error.values(operands)]
    if eqn.primitive.name in equation_parameters.CALLS or packages.is_error_alone(eqn):
        return _computed(equation_parameters.called(eqn), *operands)
    return bind(eqn, operands)


def _nan_if(due: Any, x: Any) -> Any:
    return jnp.where(due, jnp.nan, x) if is_inexact(jax.typeof(x)) else x


def _rule(eqn: Any, perturbed: Perturbed) -> tuple[ClosedJaxpr, list[bool]]:
    return jvp_of(eqn, perturbed), [not is_inexact(v.aval) for v in eqn.outvars]
