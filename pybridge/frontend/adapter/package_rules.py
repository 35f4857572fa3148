"""Primitives of packages with a derivative of their own, by the rules that JAX has for them.

Where they stand in a derivative, nothing is there that could raise an error: what a solve raises is NaN here,
and so is the cotangent of what refuses reverse mode, unless it is 0.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from itertools import compress
from typing import Any

import jax
import jax.numpy as jnp

from . import equation_parameters, packages
from .custom_rules import CustomJvp, Perturbed
from .jaxprs import ClosedJaxpr, at_places, bind, interpreted, is_inexact, is_zero, no_tangent, traced


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


def tangents(eqn: Any, primals: Sequence[Any], dots: Sequence[Any]) -> list[Any]:
    """Of the results, by the package's rule."""
    places = [i for i, t in enumerate(dots) if not is_zero(t)]
    of_perturbed = at_places(lambda *xs: bind(eqn, xs), places, primals)
    return jax.jvp(of_perturbed, [primals[i] for i in places], [dots[i] for i in places])[1]


def _rule(eqn: Any, perturbed: Perturbed) -> tuple[ClosedJaxpr, list[bool]]:
    avals, inexact = [v.aval for v in eqn.invars], [is_inexact(v.aval) for v in eqn.outvars]
    places = [i for i, p in enumerate(perturbed) if p]

    def run(*args: Any) -> list[Any]:
        xs, dots = args[: len(avals)], [no_tangent(x) for x in args[: len(avals)]]
        for i, t in zip(places, args[len(avals) :], strict=True):
            dots[i] = t
        return [*bind(eqn, xs), *compress(tangents(eqn, xs, dots), inexact)]

    jaxpr = traced(run, [*avals, *(avals[i].to_tangent_aval() for i in places)])
    return jaxpr, [not i for i in inexact]
