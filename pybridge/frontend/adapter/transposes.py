"""Linear functions whose primitives have transposes of their own.

A primitive that is an object may say by `transpose` how the cotangents of the operands in which it is linear
follow from those of its results, and a package's primitive by the rule that JAX has for it. Which operands
these are shows where it is used: in the derivative rule of another, they are those that depend on a tangent.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import compress
from typing import Any

import jax
import jax.numpy as jnp

from ...errors import UnsupportedPrimitive
from . import equation_parameters, internals, jaxprs, next_objects, packages
from .high_rules import Flat, accumulated
from .linear_map import linear_map


def kept(jaxpr: jaxprs.ClosedJaxpr, linear: Sequence[bool]) -> jaxprs.ClosedJaxpr:
    """A jaxpr that does the same, in which such a primitive that depends on the `linear` inputs is a
    `linear_map` with that transpose."""
    if not any(map(_has_own, _equations(jaxpr.jaxpr))):
        return jaxpr
    return jaxprs.traced(lambda *args: _evaluated(jaxpr, args, linear)[0], jaxpr.in_avals)


def _equations(jaxpr: Any) -> list[Any]:
    """The equations of the jaxpr and of those that it calls."""
    inner = (_equations(equation_parameters.called(eqn)) if _is_call(eqn) else [eqn] for eqn in jaxpr.eqns)
    return [eqn for eqns in inner for eqn in eqns]


def _is_call(eqn: Any) -> bool:
    return eqn.primitive.name in equation_parameters.CALLS


def _has_own(eqn: Any) -> bool:
    if not next_objects.is_high(eqn):
        return packages.has_own_derivative(eqn)
    prim = next_objects.primitive_of(eqn)
    derived = next_objects.is_a(prim, internals.CustomJVPTraced) or next_objects.is_its_value(prim)
    return not derived and next_objects.overrides(prim, "transpose")


def _evaluated(jaxpr: Any, args: Sequence[Any], linear: Sequence[bool]) -> tuple[list[Any], list[bool]]:
    """The results, and which of them depend on the `linear` arguments."""
    inner = getattr(jaxpr, "jaxpr", jaxpr)
    dependents = set(compress(inner.invars, linear))

    def are_dependent(atoms: Sequence[Any]) -> list[bool]:
        return [jaxprs.is_var(v) and v in dependents for v in atoms]

    def apply(eqn: Any, operands: list[Any]) -> list[Any]:
        results, dependent = _applied(eqn, operands, are_dependent(eqn.invars))
        dependents.update(compress(eqn.outvars, dependent))
        return results

    results = jaxprs.interpreted(jaxpr, args, apply)
    return results, are_dependent(inner.outvars)


def _applied(eqn: Any, operands: list[Any], flags: list[bool]) -> tuple[list[Any], list[bool]]:
    if _is_call(eqn):
        return _evaluated(equation_parameters.called(eqn), operands, flags)
    transposed = any(flags) and _has_own(eqn)
    results = _linear_map(eqn, operands, flags) if transposed else jaxprs.bind(eqn, operands)
    return results, [any(flags)] * len(results)


def _linear_map(eqn: Any, operands: list[Any], flags: list[bool]) -> list[Any]:
    fixed, linear = ([x for x, flag in zip(operands, flags, strict=True) if flag is f] for f in (False, True))
    if next_objects.is_high(eqn):
        return linear_map(
            lambda *args: jaxprs.bind(eqn, _merged(flags, args[: len(fixed)], args[len(fixed) :])),
            lambda *args: _by_method(eqn, flags, args[: len(fixed)], args[len(fixed) :]),
            fixed,
            linear,
        )
    if packages.is_one_way(eqn):
        return linear_map(lambda *xs: list(xs), lambda *cts: [_nan_unless_zero(ct) for ct in cts], [], linear)
    return _by_jax(eqn, flags, fixed, linear)


def _nan_unless_zero(x: Any) -> Any:
    return jnp.where(x == 0, x, jnp.nan)


def _merged(flags: Sequence[bool], known: Iterable[Any], linear: Iterable[Any]) -> list[Any]:
    knowns, linears = iter(known), iter(linear)
    return [next(linears if flag else knowns) for flag in flags]


def _by_method(eqn: Any, flags: list[bool], known: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
    """The cotangents of the linear operands, by the object's `transpose`."""
    flat = Flat(next_objects.primitive_of(eqn), [v.aval for v in eqn.invars], [v.aval for v in eqn.outvars])

    def rule(sums: tuple) -> None:
        arguments = flat.arguments(_merged(flags, known, compress(jax.tree.leaves(sums), flags)))
        flat.prim.transpose(flat.prim.out_tree.unflatten(cotangents), *arguments)

    totals = accumulated(flat, flags, rule)
    return [jaxprs.instantiated(t, a) for t, a, f in zip(totals, flat.avals, flags, strict=True) if f]


def _by_jax(eqn: Any, flags: list[bool], fixed: list[Any], linear: list[Any]) -> list[Any]:
    """Of what is inexact among the results; the others depend on tangents, but have none."""
    inexact = [jaxprs.is_inexact(v.aval) for v in eqn.outvars]

    def call(*args: Any) -> list[Any]:
        results = jaxprs.bind(eqn, _merged(flags, args[: len(fixed)], args[len(fixed) :]))
        return list(compress(results, inexact))

    def transpose(*args: Any) -> list[Any]:
        known, cotangents = args[: len(fixed)], args[len(fixed) :]
        return list(jax.linear_transpose(lambda *xs: call(*known, *xs), *linear)(list(cotangents)))

    try:
        found = iter(linear_map(call, transpose, fixed, linear))
    except Exception as e:  # whatever the package raises for operands in which it is not linear
        raise UnsupportedPrimitive(
            f"the transpose of {eqn.primitive} for what depends on tangents ({e!r})"
        ) from e
    others = jaxprs.bind(eqn, _merged(flags, fixed, linear))
    return [next(found) if is_one else y for is_one, y in zip(inexact, others, strict=True)]
